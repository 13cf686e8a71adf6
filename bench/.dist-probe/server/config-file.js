var __rewriteRelativeImportExtension = (this && this.__rewriteRelativeImportExtension) || function (path, preserveJsx) {
    if (typeof path === "string" && /^\.\.?\//.test(path)) {
        return path.replace(/\.(tsx)$|((?:\.d)?)((?:\.[^./]+?)?)\.([cm]?)ts$/i, function (m, tsx, d, ext, cm) {
            return tsx ? preserveJsx ? ".jsx" : ".js" : d && (!ext || !cm) ? m : (d + ext + "." + cm.toLowerCase() + "js");
        });
    }
    return path;
};
/**
 * Finds and loads `makegood.config.(mjs|json|ts)`. What it says about settings and topics is judged elsewhere; here it
 * only has to be one file that can be read and that exports an object.
 */
import { readdir, readFile } from "node:fs/promises";
import { extname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { errorText } from "../message/errors.js";
const NAMES = ["makegood.config.mjs", "makegood.config.json", "makegood.config.ts"];
export async function loadConfigFile(cwd, asked) {
    if (asked !== null)
        return load(resolve(cwd, asked));
    const present = new Set(await readdir(cwd).catch(() => []));
    const found = NAMES.filter((name) => present.has(name));
    const [first, ...more] = found;
    if (first === undefined)
        return { kind: "none" };
    if (more.length > 0)
        return { kind: "fault", fault: `there are several config files, keep one: ${found.join(", ")}` };
    return load(join(cwd, first));
}
async function load(path) {
    try {
        switch (extname(path)) {
            case ".json":
                return { kind: "loaded", path, value: JSON.parse(await readFile(path, "utf8")) };
            case ".ts":
            case ".mts":
                if (!stripsTypes())
                    return { kind: "fault", fault: typesRemedy(path) };
                return { kind: "loaded", path, value: await importDefault(path) };
            case ".mjs":
            case ".js":
                return { kind: "loaded", path, value: await importDefault(path) };
            default:
                return { kind: "fault", fault: `config file ${path}: its name must end in .mjs, .json or .ts` };
        }
    }
    catch (error) {
        return { kind: "fault", fault: `config file ${path}: ${errorText(error)}` };
    }
}
async function importDefault(path) {
    const module = await import(__rewriteRelativeImportExtension(pathToFileURL(path).href));
    if (module.default === undefined)
        throw new Error("it has no default export");
    return module.default;
}
function stripsTypes() {
    return Boolean(process.features.typescript);
}
function typesRemedy(path) {
    const remedy = "rename it to makegood.config.mjs (and remove the types), or run Node 22.18 or later";
    return `config file ${path}: Node ${process.versions.node} does not run TypeScript; ${remedy}`;
}
//# sourceMappingURL=config-file.js.map