/** A sink that leans on its sibling. */
import { http } from "./http.ts";
import { send } from "./send.ts";

export const webhook = [http, send];
