/** An adapter that brings a library along. */
import type { Knex } from "knex";
import { seam } from "../store/store.ts";

export const fromKnex = (knex: Knex): unknown => [knex, seam];
