/** Types of find-tool.mjs, which the test command uses too and Node 20 must be able to run. */
export interface Tool {
  readonly files: readonly string[];
  readonly packages: readonly string[];
  readonly need: string;
  readonly remedy?: string;
}

export function findTool(tool: Tool): Promise<string>;
