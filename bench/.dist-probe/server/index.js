/**
 * The door `makegood/server`: the API as a function from Request to Response, and the whole server as one call.
 */
export { createApp } from "./app.js";
export { readConfig } from "./config.js";
export { kernelOf, startServer } from "./serve.js";
//# sourceMappingURL=index.js.map