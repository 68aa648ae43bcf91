// Exports a session file as a page through pi's own exporter, and prints what that took as one JSON line.
// usage: node export-session.mjs <folder of @mariozechner/pi-coding-agent> <session.jsonl> <page.html>
//
// The file is of version 3, so pi only reads it.
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [pkg, file, page] = process.argv.slice(2);
const { exportFromFile } = await import(pathToFileURL(join(pkg, "dist/core/export-html/index.js")).href);

const start = process.hrtime.bigint();
await exportFromFile(file, page);
const ns = Number(process.hrtime.bigint() - start);
const peak = /VmHWM:\s*(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "0";
process.stdout.write(JSON.stringify({ ns, vm_hwm_kib: Number(peak), found: { bytes: statSync(page).size } }) + "\n");
