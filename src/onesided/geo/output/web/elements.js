// Elements of the page. Text from files is only ever set as text: names may be hostile.

const byId = (id) => document.getElementById(id);
const counted = (number) => number.toLocaleString("en");
const several = (number, what) => `${counted(number)} ${what}${number === 1 ? "" : "s"}`;

function textElement(kind, text, className = "") {
  return Object.assign(document.createElement(kind), { textContent: text, className });
}

function showFacts(list, rows) {
  list.replaceChildren(
    ...rows.flatMap(([label, text]) => [textElement("dt", label), textElement("dd", text)]),
  );
}
