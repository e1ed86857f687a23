// Builds the page into the package that serves it. `--check` builds into memory and compares with what is committed.
//
// React is built into files of its own under /vendor, which the import map of the shell names: pages of other workers
// that are injected later then share the host's React instead of bringing a second one.
import { readFileSync, existsSync, mkdirSync, rmSync, writeFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "src", "iii_console", "static");
const require = createRequire(import.meta.url);

const SHARED = {
  react: "react",
  "react-dom": "react-dom",
  "react-dom-client": "react-dom/client",
  "jsx-runtime": "react/jsx-runtime",
};

const common = {
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "eof",
  define: { "process.env.NODE_ENV": '"production"' },
  absWorkingDir: here,
  outdir: target,
  write: false,
  logLevel: "warning",
};

/** CommonJS has no named exports that a bundler could see: each shared module gets an entry that names them. */
const sharedModules = {
  name: "shared-modules",
  setup(setup) {
    setup.onResolve({ filter: /^shared:/ }, ({ path }) => ({ path: path.slice(7), namespace: "shared" }));
    setup.onLoad({ filter: /.*/, namespace: "shared" }, ({ path }) => {
      process.env.NODE_ENV = "production";
      const names = Object.keys(require(path)).filter((name) => name !== "default" && /^[A-Za-z]\w*$/.test(name));
      const contents = `import shared from ${JSON.stringify(path)};\nexport default shared;\nexport const { ${names.join(", ")} } = shared;\n`;
      return { contents, resolveDir: here };
    });
  },
};

async function outputs() {
  const vendor = await build({
    ...common,
    entryPoints: Object.fromEntries(Object.entries(SHARED).map(([name, id]) => [`vendor/${name}`, `shared:${id}`])),
    chunkNames: "vendor/[name]-[hash]",
    splitting: true,
    plugins: [sharedModules],
  });
  const app = await build({
    ...common,
    entryPoints: { app: "src/main.tsx", theme: "src/host/first-paint.ts" },
    external: Object.values(SHARED),
    jsx: "automatic",
  });
  const styles = await build({ ...common, entryPoints: { app: "src/styles/index.css" } });
  const files = new Map();
  for (const result of [vendor, app, styles])
    for (const file of result.outputFiles) files.set(relative(target, file.path), Buffer.from(file.contents));
  for (const name of ["index.html", "icon.svg"]) files.set(name, readFileSync(join(here, "src", name)));
  files.set("licenses.txt", licenses());
  return files;
}

function licenses() {
  const parts = ["react", "react-dom", "scheduler", "marked"].map((name) => {
    const folder = dirname(require.resolve(`${name}/package.json`));
    const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    return `${name} ${version}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  });
  return Buffer.from(parts.join("\n----\n\n"));
}

function committed() {
  if (!existsSync(target)) return new Map();
  const names = readdirSync(target, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    names.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [relative(target, path), readFileSync(path)];
    }),
  );
}

const fresh = await outputs();
if (process.argv.includes("--check")) {
  const old = committed();
  const all = new Set([...fresh.keys(), ...old.keys()]);
  const differing = [...all].filter((name) => !fresh.get(name)?.equals(old.get(name) ?? Buffer.alloc(0)));
  if (differing.length > 0) {
    console.error(`the committed page is not what its source builds (run make page): ${differing.join(", ")}`);
    process.exit(1);
  }
} else {
  rmSync(target, { recursive: true, force: true });
  for (const [name, body] of fresh) {
    mkdirSync(dirname(join(target, name)), { recursive: true });
    writeFileSync(join(target, name), body);
  }
}
