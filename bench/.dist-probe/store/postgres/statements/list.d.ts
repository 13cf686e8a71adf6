import type { ListFilter, Page } from "../../store.ts";
import { type Db } from "../db.ts";
export declare function createList(db: Db): (filter: ListFilter) => Promise<Page>;
