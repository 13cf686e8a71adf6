import { createPostgresStore, startEmbedded } from "../store/postgres/index.js";
export async function storeUrl({ config, log, moved, signal }) {
    if (config.database_url !== null)
        return { url: config.database_url, embedded: false, release: async () => { } };
    const server = await startEmbedded({
        dataDir: config.data_dir,
        log: (line) => log.info(line),
        onUrlChange: () => moved?.(),
        ...(signal ? { signal } : {}),
    });
    return { url: server.url, embedded: true, release: () => server.close() };
}
export async function openStore(options) {
    const { url, release } = await storeUrl(options);
    return { store: createPostgresStore({ url, schema: options.config.schema }), url, release };
}
//# sourceMappingURL=open-store.js.map