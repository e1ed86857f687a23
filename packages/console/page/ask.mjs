// For tests: runs functions of a module of the page. `node ask.mjs MODULE` reads one JSON array of [function, ...arguments]
// a line from stdin and writes its result as JSON, one a line.
import { createInterface } from "node:readline";
import { build } from "esbuild";

const { outputFiles } = await build({ entryPoints: [process.argv[2]], bundle: true, format: "esm", write: false });
const module = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...given] = JSON.parse(line);
  console.log(JSON.stringify(module[name](...given) ?? null));
}
