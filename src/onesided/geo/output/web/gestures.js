// Mouse, touch and keys on the map.

const CLICK_MOVES_LESS = 5; // pixels between down and up
const KEY_STEP = 80;
const KEY_ZOOM = 1.6;

function listenToMap(canvas, camera, { opened, hovered, fitAll, centred }) {
  const pointers = new Map();
  let travelled = 0;
  const at = (event) => {
    const frame = canvas.getBoundingClientRect();
    return { x: event.clientX - frame.left, y: event.clientY - frame.top };
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    canvas.setPointerCapture(event.pointerId);
    if (pointers.size === 0) travelled = 0;
    pointers.set(event.pointerId, at(event));
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = at(event);
    const before = pointers.get(event.pointerId);
    if (!before) return hovered(now.x, now.y);
    travelled += Math.hypot(now.x - before.x, now.y - before.y);
    const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    pointers.set(event.pointerId, now);
    if (others.length) pinch(camera, others[0], before, now);
    else if (travelled >= CLICK_MOVES_LESS) camera.pan(now.x - before.x, now.y - before.y);
    return undefined;
  });
  canvas.addEventListener("pointerup", (event) => {
    const alone = pointers.delete(event.pointerId) && pointers.size === 0;
    const { x, y } = at(event);
    // A finger is less exact than a pointer.
    if (alone && travelled < CLICK_MOVES_LESS) opened(x, y, event.pointerType === "touch" ? 18 : 6);
  });
  canvas.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
  canvas.addEventListener("pointerleave", () => hovered(NaN, NaN));
  canvas.addEventListener("wheel", (event) => turnWheel(event, camera, at(event)), { passive: false });
  canvas.addEventListener("dblclick", (event) => camera.zoom(2, at(event).x, at(event).y));
  canvas.addEventListener("keydown", (event) => pressKey(event, camera, { centred, fitAll }));
}

// Two fingers: what is under each of them stays under it.
function pinch(camera, still, before, now) {
  const grown = Math.hypot(now.x - still.x, now.y - still.y) / Math.hypot(before.x - still.x, before.y - still.y);
  if (Number.isFinite(grown) && grown > 0) camera.zoom(grown, (now.x + still.x) / 2, (now.y + still.y) / 2);
  camera.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
}

function turnWheel(event, camera, { x, y }) {
  event.preventDefault();
  const pixels = event.deltaY * [1, 16, 400][event.deltaMode];
  // Touchpads report a pinch as a wheel with Ctrl, in steps a tenth as large.
  const speed = event.ctrlKey ? 0.01 : 0.0022;
  camera.zoom(Math.exp(-Math.max(-300, Math.min(300, pixels)) * speed), x, y);
}

function pressKey(event, camera, { centred, fitAll }) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const actions = {
    ArrowLeft: () => camera.pan(KEY_STEP, 0),
    ArrowRight: () => camera.pan(-KEY_STEP, 0),
    ArrowUp: () => camera.pan(0, KEY_STEP),
    ArrowDown: () => camera.pan(0, -KEY_STEP),
    "+": () => camera.zoom(KEY_ZOOM),
    "=": () => camera.zoom(KEY_ZOOM),
    "-": () => camera.zoom(1 / KEY_ZOOM),
    0: fitAll,
    Enter: centred,
  };
  if (!Object.hasOwn(actions, event.key)) return;
  event.preventDefault();
  actions[event.key]();
}
