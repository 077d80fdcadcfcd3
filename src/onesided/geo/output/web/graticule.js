// Lines of longitude and latitude where there is no image, and the scale bar.

const LINES_APART = 130; // pixels, at least
const BAR_LONGEST = 120;

// The largest of 1, 2, 5 times a power of ten that is not above a value.
function roundBelow(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([5, 2, 1].find((step) => step * power <= value * (1 + 1e-9)) ?? 1);
}

const roundAbove = (value) => [1, 2, 2.5].map((by) => roundBelow(value * by)).find((step) => step >= value);

function degreesText(value, decimals, [positive, negative]) {
  const side = value < 0 ? negative : positive;
  return `${Math.abs(value).toFixed(decimals)}° ${side}`;
}

function paintGraticule(context, camera, colours) {
  const step = Math.min(30, roundAbove((LINES_APART * 360) / camera.scale) ?? 30);
  const decimals = Math.max(0, Math.ceil(-Math.log10(step)));
  const start = camera.worldAt(0, 0);
  const end = camera.worldAt(camera.width, camera.height);
  context.strokeStyle = colours.grid;
  context.fillStyle = colours.muted;
  context.lineWidth = 1;
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  context.beginPath();
  const first = Math.ceil((start.x * 360) / step);
  for (let line = first; line * step <= end.x * 360; line++) {
    const x = Math.round(camera.screenX(worldX(line * step))) + 0.5;
    context.moveTo(x, 0);
    context.lineTo(x, camera.height);
    context.fillText(degreesText(longitudeOf(worldX(line * step)), decimals, "EW"), x + 4, 14);
  }
  const south = Math.max(-HIGHEST_LATITUDE, latitudeOf(end.y));
  for (let line = Math.ceil(south / step); line * step <= Math.min(90, latitudeOf(start.y)); line++) {
    const y = Math.round(camera.screenY(worldY(line * step))) + 0.5;
    context.moveTo(0, y);
    context.lineTo(camera.width, y);
    context.fillText(degreesText(line * step, decimals, "NS"), 6, y - 4);
  }
  context.stroke();
}

function showScale(bar, camera) {
  const metres = roundBelow(BAR_LONGEST * camera.metresPerPixel());
  bar.style.width = `${metres / camera.metresPerPixel()}px`;
  if (metres >= 1000) bar.textContent = `${metres / 1000} km`;
  else bar.textContent = metres >= 1 ? `${metres} m` : `${Math.round(metres * 100)} cm`;
}
