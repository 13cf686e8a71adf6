/**
 * `npm run simulate -- --seed S --steps N [--store postgres|redis] [--json]`: bundles the real source with the simulation and runs it. Node 20
 * cannot run TypeScript; Vite, which the tests run on, makes one file of it.
 */
import { bundle } from "./bundle.mjs";

const { main } = await import(await bundle());
process.exitCode = await main(process.argv.slice(2));
