// One text or many: split typed text or dropped files into the texts to tag.

export const MOST_TEXTS = 500; // drawn at once; for more there is `cfner predict`
const MOST_BYTES = 2_000_000;

/** The texts in the field: all of it, or each line that is not empty. */
export function textsOf(written, eachLine) {
  if (!eachLine) return written.trim() === "" ? [] : [written];
  return written.split(/\r\n|\r|\n/).filter((line) => line.trim() !== "");
}

export class UnreadableFile extends Error {}

/** { text, eachLine, told } of files: text, JSON or JSON lines with a "text", columns of words (CoNLL). */
export async function readFiles(files) {
  const size = files.reduce((sum, file) => sum + file.size, 0);
  if (size > MOST_BYTES) {
    throw new UnreadableFile(`The page takes files of up to ${MOST_BYTES / 1e6} MB together. Use 'cfner predict' for more.`);
  }
  const all = [];
  for (const file of files) all.push(...textsIn(file.name, await decoded(file)));
  const eachLine = all.length > 1;
  const names = files.length > 3 ? `${files.length} files` : files.map((file) => file.name).join(", ");
  return {
    text: eachLine ? all.map((text) => text.replace(/\s*[\r\n]+\s*/g, " ")).join("\n") : (all[0] ?? ""),
    eachLine,
    told: `${all.length} ${all.length === 1 ? "text" : "texts"} from ${names}`,
  };
}

async function decoded(file) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    if (!text.includes("\0")) return text;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // which tells that it is not UTF-8
  }
  throw new UnreadableFile(`${file.name} is not a text file in UTF-8. Save it as plain text first.`);
}

function textsIn(name, content) {
  if (/\.jsonl$|\.ndjson$/i.test(name)) {
    return content.split("\n").filter((line) => line.trim()).map((line, index) => textOf(parsed(line, `${name}, line ${index + 1}`), `${name}, line ${index + 1}`));
  }
  if (/\.json$/i.test(name)) {
    const found = parsed(content, name);
    return (Array.isArray(found) ? found : [found]).map((each, index) => textOf(each, `${name}, item ${index + 1}`));
  }
  if (/\.(conll|conllu|iob2?|bio)$/i.test(name)) {
    const words = (lines) => lines.split("\n").map((line) => line.trim().split(/\s+/)[0]).filter((word) => word && word !== "#");
    return content.split(/\r?\n\s*\n/).map((lines) => words(lines).join(" ")).filter((text) => text !== "" && text !== "-DOCSTART-");
  }
  return textsOf(content, true);
}

function parsed(content, where) {
  try {
    return JSON.parse(content);
  } catch {
    throw new UnreadableFile(`${where} is not JSON.`);
  }
}

function textOf(item, where) {
  const text = typeof item === "string" ? item : (item?.text ?? item?.tokens?.join?.(" "));
  if (typeof text !== "string") throw new UnreadableFile(`${where} has no "text".`);
  return text;
}
