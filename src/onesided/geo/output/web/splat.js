// Draws many small buildings at once, as pixels of a buffer. Calls of the canvas cost a
// microsecond each, which is too much for a hundred thousand buildings; a pixel costs a
// nanosecond. Where buildings share a pixel the highest score is seen.

const DOT = 3; // pixels; a neighbourhood as small as this is one dot
const LEAST = 2; // pixels of a building that is smaller still
const MOST_PIXELS = 1.5e6; // of the buffer; on finer screens it is drawn larger
const MOST_LARGE = 1500; // buildings that are drawn by their outline above the buffer
const [SKIPPED_CODE, QUIET_CODE] = [1, 2];
const CALLED_CODE = QUIET_CODE + SHADES;
const FRAME_CODE = CALLED_CODE + SHADES;

class Splat {
  constructor(tree) {
    this.tree = tree;
    this.canvas = document.createElement("canvas");
    this.context = this.canvas.getContext("2d");
    this.palette = new Uint32Array(FRAME_CODE + 1);
  }

  resize(camera, ratio) {
    const finest = Math.sqrt(MOST_PIXELS / Math.max(1, camera.width * camera.height));
    this.ratio = Math.min(ratio, Math.max(1, finest));
    const width = Math.ceil(camera.width * this.ratio);
    const height = Math.ceil(camera.height * this.ratio);
    if (this.image?.width === width && this.image.height === height) return;
    Object.assign(this.canvas, { width, height });
    this.image = this.context.createImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.codes = new Uint8Array(width * height);
  }

  setColours(fill, colours) {
    this.palette[SKIPPED_CODE] = packedColour(colours.skipped, 0.5);
    for (let shade = 0; shade < SHADES; shade++) {
      this.palette[QUIET_CODE + shade] = packedColour(shadeColours[shade], fill * QUIET_ALPHA);
      this.palette[CALLED_CODE + shade] = packedColour(shadeColours[shade], fill);
    }
    this.palette[FRAME_CODE] = packedColour(colours.called, 1);
  }

  // Returns the buildings that are large enough for their outlines.
  paint(context, camera, threshold) {
    this.codes.fill(0);
    const large = this.cover(camera, threshold);
    const { codes, pixels, palette } = this;
    for (let place = 0; place < codes.length; place++) pixels[place] = palette[codes[place]];
    this.context.putImageData(this.image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.canvas, 0, 0, this.canvas.width / this.ratio, this.canvas.height / this.ratio);
    return large;
  }

  // Goes down the tree where there is something to see. Its parts are functions inside it,
  // because variables are reached several times as fast as properties, a hundred thousand times.
  cover(camera, threshold) {
    const { codes } = this;
    const { levels, sorted } = this.tree;
    const [across, down] = [this.image.width, this.image.height];
    const scale = camera.scale * this.ratio;
    const [left, top] = [camera.x - across / 2 / scale, camera.y - down / 2 / scale];
    const [right, bottom] = [camera.x + across / 2 / scale, camera.y + down / 2 / scale];
    const [dot, tiny] = [DOT / scale, (TINY * this.ratio) / scale];
    const large = [];

    const fill = (x, y, width, height, code) => {
      const start = x < 0 ? 0 : x;
      const end = x + width > across ? across : x + width;
      const last = y + height > down ? down : y + height;
      for (let row = y < 0 ? 0 : y; row < last; row++) {
        for (let place = row * across + start; place < row * across + end; place++) {
          if (codes[place] < code) codes[place] = code;
        }
      }
    };

    const stamp = (west, north, east, south, score) => {
      const called = score > threshold;
      const least = called ? LEAST + 1 : LEAST;
      const width = Math.max(least, ((east - west) * scale + 0.5) | 0);
      const height = Math.max(least, ((south - north) * scale + 0.5) | 0);
      const x = Math.round(((west + east) / 2 - left) * scale - width / 2);
      const y = Math.round(((north + south) / 2 - top) * scale - height / 2);
      if (called && width > DOT && height > DOT) {
        fill(x - 1, y - 1, width + 2, 1, FRAME_CODE);
        fill(x - 1, y + height, width + 2, 1, FRAME_CODE);
        fill(x - 1, y, 1, height, FRAME_CODE);
        fill(x + width, y, 1, height, FRAME_CODE);
      }
      const code = score === NO_SCORE ? SKIPPED_CODE : (called ? CALLED_CODE : QUIET_CODE) + shadeOf(score);
      fill(x, y, width, height, code);
    };

    const visit = (level, start, end) => {
      const { boxes, peaks, first } = levels[level];
      for (let node = start; node < end; node++) {
        if (peaks[node] === -Infinity) continue;
        const at = 4 * node;
        const west = boxes[at];
        const north = boxes[at + 1];
        const east = boxes[at + 2];
        const south = boxes[at + 3];
        if (west > right || east < left || north > bottom || south < top) continue;
        const side = east - west > south - north ? east - west : south - north;
        if (level === 0 && side >= tiny && large.length < MOST_LARGE) large.push(sorted[node]);
        else if (level === 0 || side <= dot) stamp(west, north, east, south, peaks[node]);
        else visit(level - 1, first[node], first[node + 1]);
      }
    };

    visit(levels.length - 1, 0, levels.at(-1).count);
    return large;
  }
}
