// Markdown of a model, drawn as elements: nothing that the text contains becomes HTML, a link leads to the web or to
// mail only, and an image is a link, since the page loads nothing from outside.
import { marked, type Token, type Tokens } from "marked";
import { type ReactNode, memo, useMemo, useState } from "react";
import { IconButton } from "./button";

export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const tokens = useMemo(() => marked.lexer(text, { gfm: true }), [text]);
  return (
    <div className="markdown">
      {tokens.map((token, at) => (
        <Piece key={at} token={token} raw={token.raw} />
      ))}
    </div>
  );
});

/** While an answer grows only its last piece is new: the others are kept as they are. */
const Piece = memo(
  function Piece({ token }: { token: Token; raw: string }) {
    return <>{block(token, 0)}</>;
  },
  (before, after) => before.raw === after.raw && before.token.type === after.token.type,
);

function blocks(tokens: Token[] | undefined): ReactNode[] {
  return (tokens ?? []).map(block);
}

function block(token: Token, key: number): ReactNode {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      return heading(token as Tokens.Heading, key);
    case "paragraph":
      return <p key={key}>{inlines(token.tokens)}</p>;
    case "text":
      return <span key={key}>{token.tokens === undefined ? plain(token.text as string) : inlines(token.tokens)}</span>;
    case "code":
      return <CodeBlock key={key} text={token.text as string} language={(token as Tokens.Code).lang ?? ""} />;
    case "blockquote":
      return <blockquote key={key}>{blocks(token.tokens)}</blockquote>;
    case "list":
      return list(token as Tokens.List, key);
    case "table":
      return table(token as Tokens.Table, key);
    case "hr":
      return <hr key={key} />;
    default:
      return <p key={key}>{token.raw}</p>;
  }
}

function heading(token: Tokens.Heading, key: number): ReactNode {
  // The page has a heading of its own above: those of an answer begin below it.
  const Level = `h${Math.min(token.depth + 2, 6)}` as "h3";
  return <Level key={key}>{inlines(token.tokens)}</Level>;
}

function list(token: Tokens.List, key: number): ReactNode {
  const items = token.items.map((item, at) => (
    <li key={at} className={item.task ? "task" : undefined}>
      {item.task && <input type="checkbox" checked={item.checked === true} disabled aria-label={item.checked ? "done" : "open"} />}
      {blocks(item.tokens)}
    </li>
  ));
  return token.ordered ? (
    <ol key={key} start={token.start === "" ? undefined : token.start}>
      {items}
    </ol>
  ) : (
    <ul key={key}>{items}</ul>
  );
}

function table(token: Tokens.Table, key: number): ReactNode {
  return (
    <div key={key} className="table-scroll" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            {token.header.map((cell, at) => (
              <th key={at} scope="col">
                {inlines(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, column) => (
                <td key={column}>{inlines(cell.tokens)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function inlines(tokens: Token[] | undefined): ReactNode[] {
  return (tokens ?? []).map(inline);
}

function inline(token: Token, key: number): ReactNode {
  switch (token.type) {
    case "strong":
      return <strong key={key}>{inlines(token.tokens)}</strong>;
    case "em":
      return <em key={key}>{inlines(token.tokens)}</em>;
    case "del":
      return <del key={key}>{inlines(token.tokens)}</del>;
    case "codespan":
      return <code key={key}>{token.text as string}</code>;
    case "br":
      return <br key={key} />;
    case "link":
      return link(token as Tokens.Link, inlines(token.tokens), key);
    case "image":
      return link(token as Tokens.Image, [token.text === "" ? "image" : (token.text as string)], key);
    case "text":
      return token.tokens === undefined ? plain(token.text as string) : <span key={key}>{inlines(token.tokens)}</span>;
    case "escape":
      return token.text as string;
    default:
      return token.raw;
  }
}

function link({ href, raw }: { href: string; raw: string }, children: ReactNode[], key: number): ReactNode {
  if (!/^(?:https?:|mailto:)/i.test(href)) return <span key={key}>{raw}</span>;
  return (
    <a key={key} href={href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

/** Entities of a text stand for signs; the lexer leaves them as they were written. */
function plain(text: string): string {
  return text
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&");
}

function CodeBlock({ text, language }: { text: string; language: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <div className="code-block">
      <div className="code-head">
        <span>{language.split(/\s/)[0]}</span>
        <IconButton
          icon={copied ? "check" : "copy"}
          label={copied ? "Copied" : "Copy code"}
          onClick={() => {
            void navigator.clipboard?.writeText(text).then(() => setCopied(true));
          }}
          onBlur={() => setCopied(false)}
        />
      </div>
      <pre className="code" tabIndex={0} role="group" aria-label="Code">
        <code>{text}</code>
      </pre>
    </div>
  );
}
