// Drawn above the buildings: dots of marks and checks, the selected building, the crosshair.

const SIGN_FROM = 9; // pixels; on smaller buildings a dot would hide the colour

// A dot on buildings that were marked before, a larger one on those that were checked here.
function paintSigns(painter, places) {
  for (const place of places) {
    const item = painter.order[place];
    const mark = painter.marks.get(item);
    if (mark) paintMark(painter, item, mark);
    else if (!painter.items.open[item] && painter.sizeOnScreen(item) >= SIGN_FROM) {
      paintDisc(painter, item, 3, painter.colours.halo, painter.colours.sign);
    }
  }
}

function paintMark(painter, item, mark) {
  const { context, camera, colours } = painter;
  const [fill, edge] =
    mark === "damaged" ? [colours.damaged, colours.halo] : [colours.halo, colours.sign];
  paintDisc(painter, item, 6, fill, edge);
  if (mark !== "unsure") return;
  const { x, y } = centreOf(painter.items, item);
  context.fillStyle = colours.sign;
  context.font = "bold 10px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText("?", camera.screenX(x), camera.screenY(y) + 0.5);
}

function paintDisc({ context, camera, items }, item, radius, fill, edge) {
  const { x, y } = centreOf(items, item);
  context.beginPath();
  context.arc(camera.screenX(x), camera.screenY(y), radius, 0, 2 * Math.PI);
  context.fillStyle = fill;
  context.strokeStyle = edge;
  context.lineWidth = 1.5;
  context.fill();
  context.stroke();
}

// Dark and light together stand out on any ground.
function strokeTwice(context, lines) {
  for (const [colour, width] of lines) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.stroke();
  }
}

function paintRing(painter, item, width) {
  const { context, colours } = painter;
  context.beginPath();
  if (painter.sizeOnScreen(item) < 12) context.rect(...painter.square(item, 12));
  else painter.trace(item);
  strokeTwice(context, [[colours.sign, width + 3], [colours.halo, width]]);
}

function paintCrosshair({ context, camera, colours }) {
  const [x, y] = [camera.width / 2, camera.height / 2];
  context.beginPath();
  for (const [right, down] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
    context.moveTo(x + 4 * right, y + 4 * down);
    context.lineTo(x + 12 * right, y + 12 * down);
  }
  strokeTwice(context, [[colours.halo, 4], [colours.sign, 1.5]]);
}
