import { errorText } from "../../message/errors.js";
import { createLog } from "../../observe/log.js";
import { systemClock } from "../../platform/clock.js";
import { storeUrl } from "../../server/open-store.js";
import { createConnection, migrateUp, migrationStatus, printMigrations } from "../../store/postgres/index.js";
import { EXIT } from "../exit-code.js";
import { complain, printJson, say, table } from "../io.js";
export function migrateCommand(program, run) {
    const migrate = program
        .command("migrate")
        .description("the database schema; always on the database itself, never over MAKEGOOD_URL");
    migrate
        .command("up")
        .description("apply what is missing; safe when several do it at once")
        .action(() => run((context) => withConnection(context, async (connection) => {
        const { io, json, config } = context;
        const done = await migrateUp(connection, config.schema);
        if (json)
            printJson(io, JSON.stringify({ applied: done }));
        else
            say(io, ...(done.length === 0 ? ["nothing to do: the schema is up to date"] : done.map((name) => `applied ${name}`)));
        return EXIT.ok;
    })));
    migrate
        .command("status")
        .description("what has been applied; exit code 1 when something is missing")
        .action(() => run((context) => withConnection(context, async (connection) => {
        const { io, json, config } = context;
        const states = await migrationStatus(connection, config.schema);
        const data = states.map(({ version, name, applied, appliedAt }) => ({ version, name, applied, applied_at: appliedAt }));
        if (json)
            printJson(io, JSON.stringify({ data, next_cursor: null }));
        else {
            const rows = data.map((one) => [
                String(one.version).padStart(4, "0"),
                one.name,
                one.applied ? "yes" : "no",
                one.applied_at ?? "",
            ]);
            table(io, ["version", "name", "applied", "at"], rows);
        }
        return data.every(({ applied }) => applied) ? EXIT.ok : EXIT.failed;
    })));
    migrate
        .command("print")
        .description("everything as one SQL script, without touching a database")
        .action(() => run(async ({ io, json, config }) => {
        const sql = printMigrations(config.schema);
        if (json)
            printJson(io, JSON.stringify({ sql }));
        else
            io.out(sql.endsWith("\n") ? sql : `${sql}\n`);
        return EXIT.ok;
    }));
}
/** A connection of its own, to the server of DATABASE_URL or to the embedded one. */
async function withConnection({ io, config }, use) {
    const log = createLog({ clock: systemClock, format: "text", level: "warn", write: (line) => io.err(line) });
    const undo = [];
    try {
        const found = await storeUrl({ config, log });
        undo.push(found.release);
        const connection = createConnection({ url: found.url, poolMax: 2 });
        undo.push(() => connection.close());
        await connection.open();
        return await use(connection, found);
    }
    catch (error) {
        complain(io, `makegood: ${errorText(error)}`);
        return EXIT.failed;
    }
    finally {
        for (const step of undo.reverse())
            await step().catch((error) => complain(io, `makegood: ${errorText(error)}`));
    }
}
//# sourceMappingURL=migrate.js.map