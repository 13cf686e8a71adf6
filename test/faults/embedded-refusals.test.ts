/**
 * Fault 46 and the binaries: what the embedded server refuses, with what to do about it; under which user it runs; and that it
 * finds or makes usable programs when the package's links are missing, cannot be made, or cannot be reached.
 */
import { chmod, chown, cp, lstat, mkdir, readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { locateNative } from "../../src/store/postgres/embedded/binaries.ts";
import { type EmbeddedOptions, type EmbeddedServer, startEmbedded } from "../../src/store/postgres/embedded.ts";
import { asRoot, dataFolder, endAll, exists, NOBODY, preparedFolder, query, startChild } from "../support/embedded-child.ts";

vi.setConfig({ testTimeout: 90_000 });
const open: EmbeddedServer[] = [];
async function start(dataDir: string, more: Partial<EmbeddedOptions> = {}): Promise<EmbeddedServer> {
  const server = await startEmbedded({ dataDir, ...more });
  open.push(server);
  return server;
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close().catch(() => undefined)));
  await endAll();
});

const uidOf = async (pid: number): Promise<number> =>
  Number(/^Uid:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, "utf8"))?.[1]);

const refused = (...parts: string[]) => ({
  code: "embedded_failed",
  message: expect.stringMatching(new RegExp(parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("[\\s\\S]*"))),
});

/** The package's binaries as npm unpacks them without install scripts: no links. */
async function unlinkedNative(folder: string): Promise<string> {
  const native = join(folder, "package", "native");
  await cp(locateNative(), native, { recursive: true, filter: async (path) => !(await lstat(path)).isSymbolicLink() });
  return native;
}
const linksIn = async (native: string): Promise<string[]> =>
  (await readdir(join(native, "lib"), { withFileTypes: true }))
    .filter((entry) => entry.isSymbolicLink())
    .map((entry) => entry.name);

describe("fault 46: what is refused", () => {
  it("fault 46: data of another major version, unchanged and with what to do", async () => {
    const dataDir = await preparedFolder();
    await writeFile(join(dataDir, "pgdata", "PG_VERSION"), "17\n");
    await expect(start(dataDir)).rejects.toMatchObject(
      refused(join(dataDir, "pgdata"), "PostgreSQL 17", "DATABASE_URL", "pg_dump"),
    );
    expect(await readdir(join(dataDir, "attached"))).toEqual([]);
    await writeFile(join(dataDir, "pgdata", "PG_VERSION"), "18\n");
    expect(await start(dataDir)).toMatchObject({ attached: false, version: expect.stringMatching(/^18\./) });
  });

  it("fault 46: a pgdata that holds something else", async () => {
    const dataDir = await dataFolder();
    await mkdir(join(dataDir, "pgdata"));
    if (asRoot) await chown(join(dataDir, "pgdata"), NOBODY, NOBODY);
    await writeFile(join(dataDir, "pgdata", "letter.txt"), "mine");
    await expect(start(dataDir)).rejects.toMatchObject(refused("not empty", "MAKEGOOD_DATA_DIR"));
    expect(await readFile(join(dataDir, "pgdata", "letter.txt"), "utf8")).toBe("mine");
  });

  it("fault 46: a path that is a file, and below one", async () => {
    const folder = await dataFolder();
    await writeFile(join(folder, "file"), "");
    await expect(start(join(folder, "file"))).rejects.toMatchObject(refused(join(folder, "file"), "MAKEGOOD_DATA_DIR"));
    await expect(start(join(folder, "file", "data"))).rejects.toMatchObject(refused("ENOTDIR", "MAKEGOOD_DATA_DIR"));
  });

  it.runIf(asRoot)("fault 46: a directory that a normal user cannot write", async () => {
    const dataDir = await dataFolder();
    const child = await startChild({ mode: "hold", dataDir, uid: NOBODY });
    expect(await child.fact("failed")).toMatchObject(refused(dataDir, "cannot be written", "EACCES", "MAKEGOOD_DATA_DIR"));
  });

  it.runIf(asRoot)(
    "fault 46: as root, a directory that the unprivileged uid cannot reach is refused, and not copied",
    async () => {
      const folder = await dataFolder();
      const closed = join(folder, "closed");
      await mkdir(closed, { mode: 0o700 });
      const failed = refused(`cannot enter ${closed}`, "MAKEGOOD_DATA_DIR", `chmod o+x ${closed}`);
      await expect(start(join(closed, "data"))).rejects.toMatchObject(failed);
      await chmod(closed, 0o711);
      await start(join(closed, "data"));
    },
  );

  it("fault 46: a platform without binaries is told to set DATABASE_URL", async () => {
    const folder = await dataFolder();
    await expect(start(folder, { nativeDir: join(folder, "nowhere") })).rejects.toMatchObject(refused("ENOENT", "DATABASE_URL"));
    // Alpine: the file is there, and the loader it names is not.
    await mkdir(join(folder, "musl", "bin"), { recursive: true });
    for (const program of ["initdb", "postgres"]) {
      await writeFile(join(folder, "musl", "bin", program), "#!/nowhere/loader\n", { mode: 0o755 });
    }
    await expect(start(folder, { nativeDir: join(folder, "musl") })).rejects.toMatchObject(refused("ENOENT", "DATABASE_URL"));
    expect(await exists(join(folder, "binaries"))).toBe(false); // a copy would not run either
  });
});

describe("fault 46: whom it runs as", () => {
  it.runIf(asRoot)("fault 46: started as root it runs under an unprivileged uid", async () => {
    const dataDir = join(await dataFolder(), "made", "on", "the", "way");
    const umask = process.umask(0o077);
    try {
      const server = await start(dataDir);
      expect(await uidOf(server.pid)).toBe(NOBODY);
      expect((await stat(join(dataDir, "pgdata"))).uid).toBe(NOBODY);
      expect((await stat(join(dataDir, "password"))).uid).toBe(0);
      await server.close();
    } finally {
      process.umask(umask);
      await rm(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    }
  });

  it.runIf(asRoot)(
    "fault 46: a normal user runs it as itself, and root leaves nothing there that the user cannot use",
    async () => {
      const dataDir = await dataFolder(NOBODY);
      const first = await startChild({ mode: "hold", dataDir, uid: NOBODY });
      expect(await uidOf((await first.fact("ready")).pid as number)).toBe(NOBODY);
      await first.close();
      for (const name of ["lock", "attached", "postgres.log"])
        await rm(join(dataDir, name), { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
      const root = await startChild({ mode: "hold", dataDir });
      const { pid, url } = await root.fact("ready");
      expect(await uidOf(pid as number)).toBe(NOBODY);
      await root.kill();
      const again = await startChild({ mode: "hold", dataDir, uid: NOBODY });
      expect(await again.fact("ready")).toMatchObject({ attached: true, pid, url });
      await again.close();
      const last = await startChild({ mode: "hold", dataDir, uid: NOBODY });
      expect(await last.fact("ready")).toMatchObject({ attached: false });
      await last.close();
    },
  );
});

describe("fault 46: the binaries", () => {
  it("fault 46: without the links of the install script it works, also for two at the same moment", async () => {
    const folder = await dataFolder();
    const nativeDir = await unlinkedNative(folder);
    expect(await linksIn(nativeDir)).toEqual([]);
    const [one, two] = await Promise.all([
      start(join(folder, "data"), { nativeDir }),
      start(join(folder, "data"), { nativeDir }),
    ]);
    expect(await query(one.url, "select 1 as one")).toEqual([{ one: 1 }]);
    expect(two.pid).toBe(one.pid);
    const links = await linksIn(nativeDir);
    expect(links).toContain("libpq.so.5");
    expect(links.filter((name) => name.includes(".new-"))).toEqual([]);
    expect(await exists(join(folder, "data", "binaries"))).toBe(false);
  });

  it.runIf(asRoot)("fault 46: a package that cannot be written is copied beside the data", async () => {
    const folder = await dataFolder();
    const nativeDir = await unlinkedNative(folder);
    const dataDir = await dataFolder(NOBODY);
    const child = await startChild({ mode: "hold", dataDir, nativeDir, uid: NOBODY });
    await child.fact("ready");
    await child.close();
    expect(await linksIn(nativeDir)).toEqual([]);
    expect(await readdir(join(dataDir, "binaries"))).toHaveLength(1);
  });

  it.runIf(asRoot)(
    "fault 46: a package that the unprivileged uid cannot reach is copied once, and mended when damaged",
    async () => {
      const folder = await dataFolder();
      const nativeDir = await unlinkedNative(folder);
      await chmod(join(folder, "package"), 0o700);
      const dataDir = join(folder, "data");
      const lines: string[] = [];
      const copies = () => lines.filter((line) => line.startsWith("copying")).length;
      const again = async () => {
        const server = await start(dataDir, { nativeDir, log: (line) => lines.push(line) });
        expect(await query(server.url, "select 1 as one")).toEqual([{ one: 1 }]);
        await server.close();
      };
      await again();
      expect(copies()).toBe(1);
      await again();
      expect(copies()).toBe(1);
      const [name] = await readdir(join(dataDir, "binaries"));
      await truncate(join(dataDir, "binaries", name!, "native", "lib", "postgresql", "plpgsql.so"), 10);
      await again();
      expect(copies()).toBe(2);
      expect(await readdir(join(dataDir, "binaries"))).toEqual([name]);
    },
  );
});
