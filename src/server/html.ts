/**
 * What pages of the server have in common: nothing of another origin, no script, one style that the policy names, text that cannot be markup.
 */
import { createHash } from "node:crypto";
import type { Reply } from "./problem.ts";

const STYLE = `:root{color-scheme:light dark;--ink:#1a1a1a;--paper:#fff;--line:#767676;--link:#0b57d0}
@media (prefers-color-scheme:dark){:root{--ink:#ececec;--paper:#141414;--line:#8f8f8f;--link:#8ab4f8}}
body{font:1rem/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:60rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;width:100%}th,td{padding:.25rem .75rem;border-bottom:1px solid var(--line);text-align:left}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}a{color:var(--link)}caption{text-align:left;padding:.5rem 0}
.scroll{overflow-x:auto}summary{cursor:pointer;padding:.25rem 0}pre{overflow-x:auto;border:1px solid var(--line);padding:.5rem}`;

const POLICY = `default-src 'none'; style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/** `body` is markup; the title is text. */
export function htmlPage(title: string, body: string): Reply {
  const text = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title><style>${STYLE}</style></head>
<body>${body}</body></html>
`;
  return { status: 200, headers: { "content-type": "text/html; charset=utf-8", "content-security-policy": POLICY }, body: text };
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => ENTITIES[char] ?? "");
}
