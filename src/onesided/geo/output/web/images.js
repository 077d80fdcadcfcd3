// The image under the buildings: one small picture inside the page, and tiles beside it that
// are loaded where the map looks. Level 0 is one tile, and every level is twice as large.

const TILE = 512;
const MOST_TILES = 120; // in memory, of a megabyte each
const MOST_LOADING = 6;

class Tiles {
  constructor(name, description, files, changed) {
    Object.assign(this, { name, files, changed, sharp: description.sharp });
    const [west, south, east, north] = description.bounds;
    this.box = { west: worldX(west), north: worldY(north), east: worldX(east), south: worldY(south) };
    this.levels = description.tiles.map((tiles) => new Set(tiles));
    this.sizes = this.levels.map((_, level) => {
      const shrink = 2 ** (this.levels.length - 1 - level);
      return { width: description.width / shrink, height: description.height / shrink };
    });
    this.loaded = new Map(); // the one used longest ago is first
    this.loading = new Map();
  }

  // The first level whose pixels are not larger than those wanted, per turn of longitude.
  levelFor(scale) {
    const across = this.box.east - this.box.west;
    const level = this.sizes.findIndex(({ width }) => width / across >= scale * 0.75);
    return level < 0 ? this.sizes.length - 1 : level;
  }

  // Columns and rows of a level that touch a box, and whose tiles exist.
  touching(level, view) {
    const { width, height } = this.sizes[level];
    const [across, down] = [this.box.east - this.box.west, this.box.south - this.box.north];
    const last = { column: Math.ceil(width / TILE) - 1, row: Math.ceil(height / TILE) - 1 };
    const column = (x) => Math.floor((((x - this.box.west) / across) * width) / TILE);
    const row = (y) => Math.floor((((y - this.box.north) / down) * height) / TILE);
    const found = [];
    for (let y = Math.max(0, row(view.north)); y <= Math.min(last.row, row(view.south)); y++) {
      for (let x = Math.max(0, column(view.west)); x <= Math.min(last.column, column(view.east)); x++) {
        if (this.levels[level].has(`${x}-${y}`)) found.push({ level, column: x, row: y });
      }
    }
    return found;
  }

  key({ level, column, row }) {
    return `${this.name}-${level}-${column}-${row}`;
  }

  bitmap(tile) {
    const key = this.key(tile);
    const bitmap = this.loaded.get(key);
    if (bitmap) {
      this.loaded.delete(key);
      this.loaded.set(key, bitmap);
    }
    return bitmap;
  }

  load(tile) {
    const key = this.key(tile);
    if (this.loaded.has(key)) return Promise.resolve();
    if (!this.loading.has(key)) this.loading.set(key, this.fetchTile(key, tile));
    return this.loading.get(key);
  }

  async fetchTile(key, tile) {
    const texts = await this.files.load(key);
    const bitmap = texts && (await decoded(pictureAddress(texts[0])).catch(() => null));
    this.loading.delete(key);
    if (bitmap) this.loaded.set(key, bitmap);
    else this.levels[tile.level].delete(`${tile.column}-${tile.row}`);
    for (const [old, picture] of this.loaded) {
      if (this.loaded.size <= MOST_TILES) break;
      picture.close();
      this.loaded.delete(old);
    }
    this.changed();
  }

  // Asks for nothing any more.
  giveUp() {
    for (const tiles of this.levels) tiles.clear();
  }

  get alive() {
    return this.levels.some((tiles) => tiles.size > 0);
  }

  // Draws what is loaded, coarse below fine, and asks for what is missing.
  paint(context, view, place, scale) {
    const wanted = this.levelFor(scale);
    const best = this.touching(wanted, view);
    const missing = best.filter((tile) => !this.bitmap(tile));
    const last = missing.length || !best.length ? 0 : wanted;
    for (let level = last; level <= wanted; level++) {
      for (const tile of level === wanted ? best : this.touching(level, view)) this.draw(context, tile, place, scale);
    }
    // Only a few at a time: when the map moves on, the rest is not wanted any more.
    const first = this.loaded.size ? missing : [...this.touching(0, view), ...missing];
    for (const tile of first) if (this.loading.size < MOST_LOADING) this.load(tile);
  }

  draw(context, tile, place, scale) {
    const bitmap = this.bitmap(tile);
    if (!bitmap) return;
    const { width, height } = this.sizes[tile.level];
    const across = (this.box.east - this.box.west) / width;
    const down = (this.box.south - this.box.north) / height;
    const [left, top] = place(this.box.west + tile.column * TILE * across, this.box.north + tile.row * TILE * down);
    const [right, bottom] = place(
      this.box.west + (tile.column * TILE + bitmap.width) * across,
      this.box.north + (tile.row * TILE + bitmap.height) * down,
    );
    // Pixels of the image stay pixels once they are large: smoothing would invent detail.
    context.imageSmoothingEnabled = scale * across < 4;
    // Half a pixel more: between two tiles there must be no seam.
    context.drawImage(bitmap, left, top, right - left + 0.5, bottom - top + 0.5);
  }

  // Waits for all tiles of a box at a scale.
  async ready(view, scale) {
    const level = this.levelFor(scale);
    await Promise.all(this.touching(level, view).map((tile) => this.load(tile)));
  }
}

// One image: the small picture of the page, and its tiles where there are some.
class GroundImage {
  constructor(bounds, tiles) {
    this.tiles = tiles;
    this.bitmap = null;
    if (!bounds) return;
    const [west, south, east, north] = bounds;
    this.box = { west: worldX(west), north: worldY(north), east: worldX(east), south: worldY(south) };
  }

  paint(context, view, place, scale) {
    if (this.bitmap) {
      const [left, top] = place(this.box.west, this.box.north);
      const [right, bottom] = place(this.box.east, this.box.south);
      context.imageSmoothingEnabled = (right - left) / this.bitmap.width < 4;
      context.drawImage(this.bitmap, left, top, right - left, bottom - top);
    }
    this.tiles?.paint(context, view, place, scale);
  }

  // Draws a box into a canvas, sharp as soon as its tiles are loaded.
  async cut(canvas, box, outline) {
    const context = canvas.getContext("2d");
    const scale = canvas.width / (box.east - box.west);
    const place = (x, y) => [(x - box.west) * scale, (y - box.north) * scale];
    const draw = () => {
      context.clearRect(0, 0, canvas.width, canvas.height);
      this.paint(context, box, place, scale);
      outline(context, place);
    };
    draw();
    await this.tiles?.ready(box, scale);
    draw();
  }
}
