// Viridis: even steps for the eye, readable for colour-blind people and in grey print. It holds
// no grey, so grey is free for buildings without a score.

const VIRIDIS = [
  [68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142],
  [31, 158, 137], [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37],
];
const SHADES = 32;

function viridis(share) {
  const place = Math.max(0, Math.min(1, share)) * (VIRIDIS.length - 1);
  const lower = Math.min(Math.floor(place), VIRIDIS.length - 2);
  const parts = VIRIDIS[lower].map((part, channel) =>
    Math.round(part + (VIRIDIS[lower + 1][channel] - part) * (place - lower)),
  );
  return `rgb(${parts.join(" ")})`;
}

const shadeColours = Array.from({ length: SHADES }, (_, shade) => viridis(shade / (SHADES - 1)));

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
