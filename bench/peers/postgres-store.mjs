// The PostgreSQL store, for the numbers of the settlement preset: each commit waits for the disk.
import { doors } from "../lib/product.mjs";

export default {
  key: "postgres-store",
  name: "PostgreSQL",
  ours: true,
  needs: "postgres",
  settings: "the PostgreSQL store",

  async setup() {},
  async reset({ pool }) {
    await pool.query("drop schema if exists makegood cascade");
  },
  async afterLoad() {},
  async openStore({ pgUrl }) {
    const { createPostgresStore } = await doors.postgres();
    return { store: createPostgresStore({ url: pgUrl }), seedsPort: null, close: async () => {} };
  },
};
