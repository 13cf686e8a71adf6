/**
 * Writes a file of messages so that it has its name only when it is whole and on the disk; a process that is killed leaves a `.part` that the
 * next one begins anew.
 */
import { createHash, type Hash } from "node:crypto";
import { type FileHandle, open, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { syncFolder } from "../platform/sync-folder.ts";
import type { Closing, Line } from "./format.ts";

const BUFFER_BYTES = 1_048_576;

export class FileWriter {
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #sha: Hash = createHash("sha256");
  #pieces: Buffer[] = [];
  #bytes = 0;

  private constructor(path: string, file: FileHandle) {
    this.#path = path;
    this.#file = file;
  }

  static async create(path: string): Promise<FileWriter> {
    return new FileWriter(path, await open(`${path}.part`, "w", 0o600));
  }

  get part(): string {
    return `${this.#path}.part`;
  }

  async add(line: Line | string): Promise<void> {
    const bytes = Buffer.from(`${typeof line === "string" ? line : JSON.stringify(line)}\n`, "utf8");
    this.#sha.update(bytes);
    this.#pieces.push(bytes);
    this.#bytes += bytes.length;
    if (this.#bytes >= BUFFER_BYTES) await this.#flush();
  }

  /** Its last line; on the disk when this returns, and not yet under its name. */
  async end(closing: Omit<Closing, "sha256">): Promise<void> {
    await this.add({ end: { ...closing, sha256: this.#sha.copy().digest("hex") } });
    await this.#flush();
    await this.#file.sync();
    await this.#file.close();
  }

  async giveName(): Promise<void> {
    await rename(this.part, this.#path);
    await syncFolder(dirname(this.#path));
  }

  async #flush(): Promise<void> {
    const bytes = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#bytes = 0;
    if (bytes.length > 0) await this.#file.writeFile(bytes);
  }
}
