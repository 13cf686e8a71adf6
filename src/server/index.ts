/** The door `makegood/server`: the API as a function from Request to Response, and the whole server as one call. */
export { type App, type AppOptions, createApp } from "./app.ts";
export { type Config, type ConfigRead, type ConfigSources, readConfig } from "./config/config.ts";
export { kernelOf } from "./kernel.ts";
export { type Asking, type Mounted, type MountOptions, mount } from "./mount.ts";
export { type Probes, type ProbesOptions, startProbes } from "./probe-port.ts";
export { type RunningServer, type ServeOptions, startServer } from "./serve.ts";
