; The digit classifier of this folder. README.md has its layers as a table; network.py says the same in numpy.
;
; The number of images N is known when the program runs, so every shape is computed: shape functions
; (rewire.shape.*) take shapes as tensors and give the shape of what the kernel of that name will write.

.const conv1.weight: f32[16, 1, 3, 3] = @weights.safetensors:conv1.weight
.const conv1.bias: f32[16] = @weights.safetensors:conv1.bias
.const conv2.weight: f32[32, 16, 3, 3] = @weights.safetensors:conv2.weight
.const conv2.bias: f32[32] = @weights.safetensors:conv2.bias
.const fc1.weight: f32[64, 128] = @weights.safetensors:fc1.weight
.const fc1.bias: f32[64] = @weights.safetensors:fc1.bias
.const fc2.weight: f32[10, 64] = @weights.safetensors:fc2.weight
.const fc2.bias: f32[10] = @weights.safetensors:fc2.bias
.const rows: i64[2] = {-1, 128}

.kernel conv = "rewire.conv" {pads=[1, 1, 1, 1]}
.kernel conv_shape = "rewire.shape.conv" {pads=[1, 1, 1, 1]}
.kernel pool = "rewire.max_pool" {kernel_shape=[2, 2], strides=[2, 2]}
.kernel pool_shape = "rewire.shape.pool" {kernel_shape=[2, 2], strides=[2, 2]}
.kernel dense = "rewire.dense"
.kernel dense_shape = "rewire.shape.dense"
.kernel relu = "rewire.relu"
.kernel softmax = "rewire.softmax"
.kernel flatten_shape = "rewire.shape.reshape"
.kernel bytes = "rewire.shape.bytes" {element_bytes=4}

.func main(image: f32[N, 1, 8, 8]) -> probabilities: f32[N, 10]
  %w = load_const conv1.weight
  %b = load_const conv1.bias
  %x = invoke conv_relu_pool(%image, %w, %b)
  %w = load_const conv2.weight
  %b = load_const conv2.bias
  %x = invoke conv_relu_pool(%x, %w, %b)
  %x = invoke flatten(%x)
  %w = load_const fc1.weight
  %b = load_const fc1.bias
  %x = invoke dense(%x, %w, %b)
  invoke_packed relu(%x, %x), outputs=1
  %w = load_const fc2.weight
  %b = load_const fc2.bias
  %x = invoke dense(%x, %w, %b)
  %shape = shape_of %x
  %probabilities = invoke new_tensor(%shape)
  invoke_packed softmax(%x, %probabilities), outputs=1
  ret %probabilities
.end

; relu writes where it reads: the one kind of overlap that elementwise kernels allow.
.func conv_relu_pool(x: f32[?, ?, ?, ?], weight: f32[?, ?, ?, ?], bias: f32[?]) -> y: f32[?, ?, ?, ?]
  %x_shape = shape_of %x
  %weight_shape = shape_of %weight
  %storage = alloc_storage _, alignment=64, i64[4], cpu
  %shape = alloc_tensor %storage, _, i64[4]
  invoke_packed conv_shape(%x_shape, %weight_shape, %shape), outputs=1
  %conv = invoke new_tensor(%shape)
  invoke_packed conv(%x, %weight, %bias, %conv), outputs=1
  invoke_packed relu(%conv, %conv), outputs=1
  %storage = alloc_storage _, alignment=64, i64[4], cpu
  %pooled = alloc_tensor %storage, _, i64[4]
  invoke_packed pool_shape(%shape, %pooled), outputs=1
  %y = invoke new_tensor(%pooled)
  invoke_packed pool(%conv, %y), outputs=1
  ret %y
.end

.func dense(x: f32[?, ?], weight: f32[?, ?], bias: f32[?]) -> y: f32[?, ?]
  %x_shape = shape_of %x
  %weight_shape = shape_of %weight
  %storage = alloc_storage _, alignment=64, i64[2], cpu
  %shape = alloc_tensor %storage, _, i64[2]
  invoke_packed dense_shape(%x_shape, %weight_shape, %shape), outputs=1
  %y = invoke new_tensor(%shape)
  invoke_packed dense(%x, %weight, %bias, %y), outputs=1
  ret %y
.end

; [N, 32, 2, 2] to [N, 128]: a view, nothing is copied.
.func flatten(x: f32[?, ?, ?, ?]) -> y: f32[?, ?]
  %x_shape = shape_of %x
  %rows = load_const rows
  %storage = alloc_storage _, alignment=64, i64[2], cpu
  %shape = alloc_tensor %storage, _, i64[2]
  invoke_packed flatten_shape(%x_shape, %rows, %shape), outputs=1
  %y = reshape_tensor %x, %shape
  ret %y
.end

; A tensor of a shape that is known only now: its size in bytes, storage of that size, the tensor on it.
.func new_tensor(shape: i64[?]) -> tensor: f32[*]
  %storage = alloc_storage _, alignment=64, i64[], cpu
  %size = alloc_tensor %storage, _, i64[]
  invoke_packed bytes(%shape, %size), outputs=1
  %storage = alloc_storage %size, alignment=64, f32, cpu
  %tensor = alloc_tensor_reg %storage, _, %shape, f32
  ret %tensor
.end
