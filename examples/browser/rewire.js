// SPDX-License-Identifier: Apache-2.0
// rewire.js: runs programs that vm-aot and clang have made into WebAssembly, in browsers, Node and workers.
//
//   const model = await Rewire.load(fetch("digits.wasm"), "digits");
//   const {probabilities} = model.run({image: pixels});
//
// It reads the program's own table of functions (compiler/aot/function_info.h), so it serves any program whose kernels and
// weights are inside. Memory is taken once, when the model is loaded.
"use strict";

const Rewire = (() => {
  const ARRAYS = {
    f32: Float32Array, f64: Float64Array, i8: Int8Array, u8: Uint8Array, bool: Uint8Array, i16: Int16Array, u16: Uint16Array,
    i32: Int32Array, u32: Uint32Array, i64: BigInt64Array, u64: BigUint64Array,
  };
  const ERRORS = {1: "a size is not between 1 and its largest one", 8: "an instruction failed", 9: "a kernel failed", 10: "calls are too deep"};
  // Sizes of the table's structs where pointers have 4 bytes, and where their members lie.
  const FUNCTION = {name: 0, arena: 16, inputs: 24, inputCount: 28, outputs: 32, outputCount: 36, sizes: 40, sizeCount: 44, outputDims: 48, run: 52};
  const TENSOR = {bytes: 24, name: 0, dtype: 4, rank: 8, dims: 12, size: 16};

  class Model {
    constructor(instance, prefix) {
      this.exports = instance.exports;
      this.memory = instance.exports.memory;
      this.end = instance.exports.__heap_base.value;
      const table = instance.exports[`${prefix}_functions`];
      if (!table) throw new Error(`the program has no table ${prefix}_functions; link it with -Wl,--export=${prefix}_functions`);
      const at = table.value;
      this.name = this.text(this.u32(at + FUNCTION.name));
      if (this.u32(at + FUNCTION.sizeCount) !== 0) throw new Error(`${this.name}: sizes that vary are not supported; compile with --dim`);
      this.inputs = this.tensors(at, FUNCTION.inputs, FUNCTION.inputCount);
      this.outputs = this.tensors(at, FUNCTION.outputs, FUNCTION.outputCount);
      this.call = instance.exports.__indirect_function_table.get(this.u32(at + FUNCTION.run));
      this.arena = this.take(this.u32(at + FUNCTION.arena));
      this.inputList = this.list(this.inputs);
      this.outputList = this.list(this.outputs);
    }

    // Runs the function. `given` has an array for each input by name: a typed array of the input's dtype, or numbers. Returns a
    // copy of each output by name.
    run(given) {
      for (const name of Object.keys(given)) {
        if (!this.inputs.some((input) => input.name === name)) throw new Error(`${this.name} has no input ${name}; its inputs: ${this.inputs.map((each) => each.name).join(", ")}`);
      }
      for (const input of this.inputs) {
        const values = given[input.name];
        if (values === undefined) throw new Error(`${this.name}: input ${input.name} is not given`);
        if (values.length !== input.count) throw new Error(`${this.name}: input ${input.name} has ${input.count} elements [${input.dims}], ${values.length} given`);
        this.view(input).set(values);
      }
      const code = this.call(0, this.arena, 0, 0, this.inputList, this.outputList);
      if (code !== 0) throw new Error(`${this.name}: error ${code}: ${ERRORS[code] || "unknown"}`);
      return Object.fromEntries(this.outputs.map((output) => [output.name, this.view(output).slice()]));
    }

    u32(at) {
      return new DataView(this.memory.buffer).getUint32(at, true);
    }
    text(at) {
      const bytes = new Uint8Array(this.memory.buffer, at);
      return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
    }
    view(tensor) {
      return new tensor.array(this.memory.buffer, tensor.at, tensor.count);
    }
    // Memory behind what the program has, at a multiple of 16.
    take(bytes) {
      const at = (this.end + 15) & ~15;
      this.end = at + bytes;
      const missing = this.end - this.memory.buffer.byteLength;
      if (missing > 0) this.memory.grow(Math.ceil(missing / 65536));
      return at;
    }
    tensors(at, first, count) {
      const all = [];
      for (let i = 0; i < this.u32(at + count); ++i) {
        const row = this.u32(at + first) + i * TENSOR.bytes;
        const dtype = this.text(this.u32(row + TENSOR.dtype));
        const array = ARRAYS[dtype];
        if (!array) throw new Error(`${this.name}: JavaScript has no array of ${dtype}`);
        const dims = [];
        for (let d = 0; d < this.u32(row + TENSOR.rank); ++d) dims.push(this.u32(this.u32(row + TENSOR.dims) + 8 * d));
        const bytes = this.u32(row + TENSOR.size);
        all.push({name: this.text(this.u32(row + TENSOR.name)), dtype, dims, array, count: bytes / array.BYTES_PER_ELEMENT, at: this.take(bytes)});
      }
      return all;
    }
    // An array of pointers to the tensors' memory.
    list(tensors) {
      const at = this.take(4 * Math.max(tensors.length, 1));
      const words = new DataView(this.memory.buffer);
      tensors.forEach((tensor, i) => words.setUint32(at + 4 * i, tensor.at, true));
      return at;
    }
  }

  // `source` is a Response or a promise of one, or the bytes. `prefix` is that of vm-aot --prefix.
  async function load(source, prefix = "model") {
    let bytes = await source;
    if (typeof Response !== "undefined" && bytes instanceof Response) {
      if (!bytes.ok) throw new Error(`${bytes.url}: ${bytes.status} ${bytes.statusText}`);
      bytes = await bytes.arrayBuffer();
    }
    const {instance} = await WebAssembly.instantiate(bytes, {});
    return new Model(instance, prefix);
  }

  return {load};
})();

if (typeof module !== "undefined") module.exports = Rewire;
