/** The catalogue that is shipped, family by family. Where two signatures are equally certain the one that stands first speaks. */
import { ACCESS } from "./access.ts";
import { BUSINESS } from "./business.ts";
import { CAPACITY } from "./capacity.ts";
import { DATABASE } from "./database.ts";
import { HTTP } from "./http.ts";
import { NETWORK } from "./network.ts";
import { PAYLOAD } from "./payload.ts";
import { PROGRAM } from "./program.ts";
import { TARGET } from "./target.ts";

export const SHIPPED_SIGNATURES = [DATABASE, ACCESS, CAPACITY, BUSINESS, TARGET, PROGRAM, PAYLOAD, NETWORK, HTTP].flat();
