// Colours of scores. Python writes them, for this page and for QGIS.

const SHADES = data.colours.length;
const shadeColours = data.colours.map((rgb) => `rgb(${rgb.join(" ")})`);

const shadeOf = (score) => Math.max(0, Math.min(SHADES - 1, Math.floor(score * SHADES)));

// A colour as the pixels of a canvas hold it: on all machines that browsers run on, red first.
function packedColour(colour, alpha) {
  const [red, green, blue] = channels(colour);
  return ((Math.round(alpha * 255) << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

function channels(colour) {
  if (colour.startsWith("#")) return [1, 3, 5].map((start) => parseInt(colour.slice(start, start + 2), 16));
  return colour.match(/\d+/g).map(Number);
}

// The colours of the page, which change with light and dark.
function themeColours() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  return Object.fromEntries(
    ["ground", "grid", "muted", "skipped", "called", "casing", "damaged", "sign", "halo"].map(
      (name) => [name, colour(name)],
    ),
  );
}
