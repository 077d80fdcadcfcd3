// CSV as spreadsheets read and write it.

// A cell that starts with = + - @, maybe after spaces or separators, is a formula to a spreadsheet;
// an apostrophe makes it text. storage/names.py has the same rule.
const FORMULA =
  /^(?:'*[\t\r\n]|[\s'";,|\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b])/;

function cell(text) {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",;|\t\r\n\v\f\u001c-\u001e\u0085\u2028\u2029]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const nameInCell = (text) => (text.startsWith("'") && FORMULA.test(text) ? text.slice(1) : text);

// Spreadsheets in half of Europe separate CSV by semicolons.
function separatorOf(text) {
  const [first] = text.split(/\r?\n/, 1);
  return [",", ";", "\t"].find((mark) => first.includes(mark)) ?? ",";
}

// The rows of a table, each a list of cells; null if a quote does not close where it should.
function rowsOf(text) {
  const separator = separatorOf(text);
  const ending = new RegExp(`[${separator}\r\n]|$`, "g");
  const rows = [[]];
  for (let place = 0; place < text.length; ) {
    let found = quotedCell(text, place);
    if (found === null) return null;
    if (!found) {
      ending.lastIndex = place;
      const end = ending.exec(text).index;
      found = { value: text.slice(place, end), end };
    }
    rows.at(-1).push(found.value);
    place = found.end;
    if (text[place] === separator) {
      place++;
    } else if (place < text.length) {
      if (!/[\r\n]/.test(text[place])) return null;
      place += text.startsWith("\r\n", place) ? 2 : 1;
      rows.push([]);
    }
  }
  return rows.filter((cells) => cells.some((one) => one !== ""));
}

// The text between quotes and where it ends; false without quotes, null if they do not close.
function quotedCell(text, start) {
  if (text[start] !== '"') return false;
  let [value, end] = ["", start];
  do {
    if (end > start) value += '"'; // two quotes inside mean one
    const close = text.indexOf('"', end + 1);
    if (close < 0) return null;
    value += text.slice(end + 1, close);
    end = close + 1;
  } while (text[end] === '"');
  return { value, end };
}

// A table whose first column holds names.
function csvText(columns, rows) {
  return [columns, ...rows].map((row) => `${row.map((value) => cell(String(value ?? ""))).join(",")}\n`).join("");
}
