// Pictures of buildings: cut from the image with their surroundings, or small files beside the
// page, or, for some hundred buildings, inside the page. Every building has one.

const AROUND = 0.75; // of a building's size, on each side
const LEAST_METRES = 24; // a picture's side
const PICTURE_PIXELS = 480;
const THUMBNAIL_PIXELS = 96;

class Pictures {
  constructor(items, ground) {
    Object.assign(this, { items, ground, names: ["before", "after"] });
    this.chips = data.files?.chips ?? null;
    this.files = new Map();
    if (this.chips?.rows) this.placeOf = new Map(this.chips.rows.map((item, place) => [item, place]));
  }

  // An element, or null if this side has no picture of the building.
  picture(item, side, alt, pixels = PICTURE_PIXELS) {
    const image = this.ground.images[this.names[side]];
    const small = this.place(item) >= 0 && (side === 1 || this.chips.sides === 2);
    if (image?.tiles?.alive && this.items.placed(item) && (image.tiles.sharp || !small)) {
      return this.cut(image, item, alt, pixels);
    }
    const source = this.items.picture(item, side);
    if (source) return Object.assign(new Image(), { src: source, alt });
    if (small) return this.chip(item, side, alt);
    if (image && this.items.placed(item)) return this.cut(image, item, alt, pixels);
    return null;
  }

  thumbnail(item) {
    return this.picture(item, 1, "", THUMBNAIL_PIXELS) ?? this.picture(item, 0, "", THUMBNAIL_PIXELS);
  }

  // Where the building is among the files, -1 if it is not.
  place(item) {
    if (!this.chips) return -1;
    if (this.placeOf) return this.placeOf.get(item) ?? -1;
    return item < this.chips.count ? item : -1;
  }

  chip(item, side, alt) {
    const place = this.place(item);
    const number = Math.floor(place / this.chips.each);
    if (!this.files.has(number)) this.files.set(number, this.ground.files.load(`chips-${number}`));
    const picture = Object.assign(new Image(), { alt });
    this.files.get(number).then((texts) => {
      const within = (place % this.chips.each) * this.chips.sides + (this.chips.sides === 2 ? side : 0);
      if (texts) picture.src = pictureAddress(texts[within]);
    });
    return picture;
  }

  cut(image, item, alt, pixels) {
    const canvas = Object.assign(document.createElement("canvas"), { width: pixels, height: pixels });
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", alt);
    const { west, north, east, south } = boxOf(this.items, item);
    const [x, y] = [(west + east) / 2, (north + south) / 2];
    const least = LEAST_METRES / (scaleAt(y, 1));
    const side = Math.max(least, Math.max(east - west, south - north) * (1 + 2 * AROUND));
    const box = { west: x - side / 2, north: y - side / 2, east: x + side / 2, south: y + side / 2 };
    image.cut(canvas, box, (context, place) => {
      if (pixels === PICTURE_PIXELS) this.outline(context, item, place);
    });
    return canvas;
  }

  // A thin line: what is seen matters more than where it ends.
  outline(context, item, place) {
    const { items } = this;
    context.beginPath();
    for (let ring = items.firstRing[item]; ring < items.firstRing[item + 1]; ring++) {
      for (let corner = items.firstCorner[ring]; corner < items.firstCorner[ring + 1]; corner++) {
        const [x, y] = place(items.x[corner], items.y[corner]);
        if (corner === items.firstCorner[ring]) context.moveTo(x, y);
        else context.lineTo(x, y);
      }
      context.closePath();
    }
    context.setLineDash([7, 5]);
    strokeTwice(context, [["rgb(0 0 0 / 0.7)", 4.5], ["rgb(255 255 255 / 0.95)", 2.5]]);
    context.setLineDash([]);
  }
}
