// Loads files that lie beside the page. Browsers let a page from a disk run a script and read
// nothing else, so each file is a script that calls `onesidedFile` with texts in base64.

class Files {
  constructor(folder, missing) {
    this.folder = folder.split("/").map(encodeURIComponent).join("/");
    this.missing = missing;
    this.waiting = new Map();
    window.onesidedFile = (name, texts) => {
      this.waiting.get(name)?.(texts);
    };
  }

  // The texts of a file, null if it is not there.
  load(name) {
    return new Promise((done) => {
      const script = document.createElement("script");
      const finish = (texts) => {
        this.waiting.delete(name);
        script.remove();
        if (!texts) this.missing();
        done(texts);
      };
      this.waiting.set(name, finish);
      script.addEventListener("error", () => finish(null));
      script.src = `${this.folder}/${name}.js`;
      document.head.append(script);
    });
  }
}

const pictureAddress = (text) => `data:${PICTURE_TYPES[text[0]]};base64,${text}`;

async function decoded(address) {
  const image = Object.assign(new Image(), { src: address });
  await image.decode();
  return createImageBitmap(image);
}
