// Reads {"texts": [...]} from stdin; prints {"marked": [...], "remark": [...]}: each text as HTML of these renderers.
import { marked } from "marked";
import rehypeStringify from "rehype-stringify";
import remarkGfm from "remark-gfm";
import remarkParse from "remark-parse";
import remarkRehype from "remark-rehype";
import { unified } from "unified";

let given = "";
for await (const chunk of process.stdin) given += chunk;
const { texts } = JSON.parse(given);
const remark = unified()
  .use(remarkParse)
  .use(remarkGfm)
  .use(remarkRehype, { allowDangerousHtml: true })
  .use(rehypeStringify, { allowDangerousHtml: true });
const rendered = { marked: [], remark: [] };
for (const text of texts) {
  rendered.marked.push(marked.parse(text, { gfm: true }));
  rendered.remark.push(String(remark.processSync(text)));
}
process.stdout.write(JSON.stringify(rendered));
