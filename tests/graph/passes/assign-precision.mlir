// RUN: charonia-opt %s -assign-precision=precision=fp16 -canonicalize -cse -split-input-file | FileCheck %s
// RUN: charonia-opt %s -assign-precision=precision=bf16 -canonicalize -cse -split-input-file | FileCheck %s --check-prefix=BF16
// RUN: charonia-opt %s -assign-precision=precision=tf32 -split-input-file | FileCheck %s --check-prefix=TF32
// RUN: not charonia-opt %s -assign-precision=precision=fp17 -split-input-file 2>&1 | FileCheck %s --check-prefix=BAD

// BAD: precision must be fp32, tf32, fp16 or bf16, not fp17

!x = tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>

// The signature stays; weights are cast by themselves.
// CHECK-LABEL: @signature
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32
// CHECK-DAG: %[[W:.*]] = graph.weight "w" : tensor<8x8xf32>
// CHECK-DAG: %[[WH:.*]] = graph.cast %[[W]] {to = f16}
// CHECK-DAG: %[[XH:.*]] = graph.cast %[[X]] {to = f16}
// CHECK-DAG: %[[H:.*]] = graph.constant dense<5.000000e-01> : tensor<f16>
// CHECK: %[[M:.*]] = graph.matmul %[[XH]], %[[WH]] : {{.*}}tensor<8x8xf16>
// CHECK: %[[S:.*]] = graph.mul %[[M]], %[[H]]
// CHECK: %[[Y:.*]] = graph.cast %[[S]] {to = f32}
// CHECK: return %[[Y]]
// BF16-LABEL: @signature
// BF16: graph.matmul {{.*}}tensor<8x8xbf16>
// TF32-LABEL: @signature
// TF32: graph.matmul %arg0, %{{.*}}tensor<8x8xf32>
func.func @signature(%x: !x) -> !x {
  %w = graph.weight "w" : tensor<8x8xf32>
  %half = graph.constant dense<0.5> : tensor<f32>
  %0 = graph.matmul %x, %w : (!x, tensor<8x8xf32>) -> !x
  %1 = graph.mul %0, %half : (!x, tensor<f32>) -> !x
  return %1 : !x
}

// -----

// Expressions of weights alone are rounded once, at their end.
// CHECK-LABEL: @weights
// CHECK: %[[WS:.*]] = graph.mul %{{.*}}, %{{.*}} : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
// CHECK: graph.cast %[[WS]] {to = f16}
func.func @weights(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %w = graph.weight "w" : tensor<8x8xf32>
  %s = graph.weight "s" : tensor<8xf32>
  %ws = graph.mul %w, %s : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  %0 = graph.matmul %x, %ws : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// Numbers that the small type lacks stay in f32 and so does what they are added
// to; a contraction takes them clamped, infinities as they are. A table becomes
// narrow before it is looked up.
// CHECK-LABEL: @masks
// CHECK-DAG: %[[LOW:.*]] = graph.constant dense<-3.40282347E+38> : tensor<f32>
// CHECK-DAG: %[[LEAST:.*]] = graph.constant dense<-6.550400e+04> : tensor<f32>
// CHECK-DAG: %[[M:.*]] = graph.select %{{.*}}, %{{.*}}, %[[LOW]] : {{.*}} -> tensor<1x1x1x8xf32>
// CHECK-DAG: %[[T:.*]] = graph.cast %{{.*}} {to = f16} : (tensor<100x16xf32>) -> tensor<100x16xf16>
// CHECK-DAG: %[[E:.*]] = graph.gather %[[T]]
// CHECK-DAG: %[[A:.*]] = graph.attention {{.*}} bias %[[M]] {{.*}} -> tensor<1x1x8x16xf16>
// CHECK-DAG: %[[S:.*]] = graph.cast %{{.*}} {to = f32} : (tensor<1x1x8x8xf16>) -> tensor<1x1x8x8xf32>
// CHECK-DAG: %[[B:.*]] = graph.add %[[S]], %[[M]] : (tensor<1x1x8x8xf32>, tensor<1x1x1x8xf32>) -> tensor<1x1x8x8xf32>
// CHECK-DAG: %[[I:.*]] = graph.is_inf %[[B]]
// CHECK-DAG: %[[C:.*]] = graph.max %[[B]], %[[LEAST]]
// CHECK-DAG: %[[D:.*]] = graph.min %[[C]]
// CHECK-DAG: %[[F:.*]] = graph.select %[[I]], %[[B]], %[[D]]
// CHECK-DAG: graph.cast %[[F]] {to = f16} : (tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf16>
func.func @masks(%i: tensor<8xi64>, %k: tensor<1x1x1x8xi1>) -> (tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>) {
  %w = graph.weight "table" : tensor<100x16xf32>
  %zero = graph.constant dense<0.0> : tensor<f32>
  %low = graph.constant dense<-3.40282347E+38> : tensor<f32>
  %0 = graph.gather %w, %i {axis = 0 : i64} : (tensor<100x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
  %q = graph.reshape %0 : (tensor<8x16xf32>) -> tensor<1x1x8x16xf32>
  %m = graph.select %k, %zero, %low : (tensor<1x1x1x8xi1>, tensor<f32>, tensor<f32>) -> tensor<1x1x1x8xf32>
  %a = graph.attention %q, %q, %q bias %m {scale = 1.0 : f64} : (tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x1x8xf32>) -> tensor<1x1x8x16xf32>
  %t = graph.transpose %q {permutation = array<i64: 0, 1, 3, 2>} : (tensor<1x1x8x16xf32>) -> tensor<1x1x16x8xf32>
  %s = graph.matmul %q, %t : (tensor<1x1x8x16xf32>, tensor<1x1x16x8xf32>) -> tensor<1x1x8x8xf32>
  %b = graph.add %s, %m : (tensor<1x1x8x8xf32>, tensor<1x1x1x8xf32>) -> tensor<1x1x8x8xf32>
  %p = graph.matmul %b, %q : (tensor<1x1x8x8xf32>, tensor<1x1x8x16xf32>) -> tensor<1x1x8x16xf32>
  return %a, %p : tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>
}

// -----

// A mask that is computed of an input keeps its range on the way to the operator
// that reads it: the input too, of which there is no other reader.
// CHECK-LABEL: @computed_mask
// CHECK-SAME: %[[M:[^ ]*]]: tensor<1x1x8x8xf32>
// CHECK-DAG: %[[LOW:.*]] = graph.constant dense<-3.40282347E+38> : tensor<f32>
// CHECK: %[[AWAY:.*]] = graph.sub %{{.*}}, %[[M]]
// CHECK: %[[B:.*]] = graph.mul %[[AWAY]], %[[LOW]] : {{.*}} -> tensor<1x1x8x8xf32>
// CHECK: graph.attention {{.*}} bias %[[B]] {{.*}}tensor<1x1x8x8xf32>) -> tensor<1x1x8x16xf16>
func.func @computed_mask(%q: tensor<1x1x8x16xf32>, %m: tensor<1x1x8x8xf32>) -> tensor<1x1x8x16xf32> {
  %one = graph.constant dense<1.0> : tensor<f32>
  %low = graph.constant dense<-3.40282347E+38> : tensor<f32>
  %away = graph.sub %one, %m : (tensor<f32>, tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32>
  %b = graph.mul %away, %low : (tensor<1x1x8x8xf32>, tensor<f32>) -> tensor<1x1x8x8xf32>
  %1 = graph.attention %q, %q, %q bias %b {scale = 1.0 : f64} : (tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x8xf32>) -> tensor<1x1x8x16xf32>
  return %1 : tensor<1x1x8x16xf32>
}

// -----

// A softmax sees the fill of its mask, and gives numbers that fit again. What is
// bounded anew fits, too: what activations make of both fits them. A product that
// is read in f32 alone is not rounded before.
// CHECK-LABEL: @bounded
// CHECK: %[[A:.*]] = graph.matmul {{.*}} -> tensor<4x4xf16>
// CHECK: %[[S:.*]] = graph.softmax %{{.*}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK: %[[M:.*]] = graph.max %[[AW:.*]], %{{.*}} : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
// CHECK: %[[P:.*]] = graph.mul %[[S]], %[[AW]] : (tensor<4x4xf32>, tensor<4x4xf32>)
// CHECK: %[[Y:.*]] = graph.mul %[[P]], %[[M]] : (tensor<4x4xf32>, tensor<4x4xf32>)
// CHECK: graph.cast %[[Y]] {to = f16}
func.func @bounded(%x: tensor<4x4xf32>, %k: tensor<4x4xi1>) -> tensor<4x4xf32> {
  %low = graph.constant dense<-1.0e9> : tensor<f32>
  %least = graph.constant dense<-3.40282347E+38> : tensor<f32>
  %a = graph.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = graph.select %k, %a, %low : (tensor<4x4xi1>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %1 = graph.softmax %0 {axis = 1 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = graph.max %a, %least : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %3 = graph.mul %1, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = graph.mul %3, %2 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %4 : tensor<4x4xf32>
}

// -----

// So does a mask that is an input, and what is a view of it.
// CHECK-LABEL: @input_mask
// CHECK-SAME: %[[M:[^ ]*]]: tensor<8x8xf32>
// CHECK: %[[R:.*]] = graph.reshape %[[M]] : (tensor<8x8xf32>) -> tensor<1x1x8x8xf32>
// CHECK: graph.attention {{.*}} bias %[[R]] {{.*}} -> tensor<1x1x8x16xf16>
func.func @input_mask(%q: tensor<1x1x8x16xf32>, %m: tensor<8x8xf32>) -> tensor<1x1x8x16xf32> {
  %0 = graph.reshape %m : (tensor<8x8xf32>) -> tensor<1x1x8x8xf32>
  %1 = graph.attention %q, %q, %q bias %0 {scale = 1.0 : f64} : (tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x8xf32>) -> tensor<1x1x8x16xf32>
  return %1 : tensor<1x1x8x16xf32>
}

// -----

// Sums stay wide until an activation takes them.
// CHECK-LABEL: @sums
// CHECK: %[[R:.*]] = graph.reduce sum %{{.*}} : (tensor<4x8xf32>) -> tensor<4x1xf32>
// CHECK: %[[M:.*]] = graph.mul %[[R]], %{{.*}} : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
// CHECK: %[[D:.*]] = graph.sub %{{.*}}, %[[M]] : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
// CHECK: graph.cast %[[D]] {to = f16}
func.func @sums(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = graph.constant dense<0.125> : tensor<f32>
  %a = graph.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %0 = graph.reduce sum %a {axes = array<i64: 1>, keepdims} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %1 = graph.mul %0, %e : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %2 = graph.sub %a, %1 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// -----

// Positions, doubles and integers are left alone; comparisons see what they saw.
// CHECK-LABEL: @others
// CHECK-DAG: graph.cast %arg0 {to = f32}
// CHECK-DAG: graph.sin %{{.*}} : (tensor<8xf32>)
// CHECK-DAG: graph.add %arg1, %arg1 : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
// CHECK-DAG: graph.compare gt %{{.*}}, %{{.*}} : (tensor<4xf32>, tensor<f32>) -> tensor<4xi1>
func.func @others(%i: tensor<8xi64>, %d: tensor<4xf64>, %x: tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf64>, tensor<4xi1>) {
  %c = graph.cast %i {to = f32} : (tensor<8xi64>) -> tensor<8xf32>
  %s = graph.sin %c : (tensor<8xf32>) -> tensor<8xf32>
  %a = graph.add %d, %d : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %e = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %one = graph.constant dense<1.0> : tensor<f32>
  %g = graph.compare gt %e, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xi1>
  return %s, %a, %g : tensor<8xf32>, tensor<4xf64>, tensor<4xi1>
}

// -----

// A contraction's finite constants stay finite, infinite ones infinite.
// CHECK-LABEL: @constants
// CHECK-DAG: graph.constant dense<{{\[\[}}6.550400e+04, 0xFC00, 1.000980e+00, -6.550400e+04]]> : tensor<1x4xf16>
// BF16-LABEL: @constants
// BF16-DAG: graph.constant dense<{{\[\[}}9.994240e+05, 0xFF80, 1.000000e+00, -3.389530e+38]]> : tensor<1x4xbf16>
func.func @constants(%x: tensor<1x1xf32>) -> tensor<1x4xf32> {
  %c = graph.constant dense<[[1.0e6, 0xFF800000, 1.001, -3.40282347E+38]]> : tensor<1x4xf32>
  %0 = graph.matmul %x, %c : (tensor<1x1xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}

// -----

// A number without an exact form in the small type stays as it is: 1/6 in f16
// would put all elements off alike. 3 has one.
// CHECK-LABEL: @exact_numbers
// CHECK-DAG: %[[SIXTH:.*]] = graph.constant dense<0.166666672> : tensor<f32>
// CHECK-DAG: %[[THREE:.*]] = graph.constant dense<3.000000e+00> : tensor<f16>
// CHECK: %[[M:.*]] = graph.matmul {{.*}} -> tensor<4x4xf16>
// CHECK: %[[A:.*]] = graph.add %[[M]], %[[THREE]] : (tensor<4x4xf16>, tensor<f16>)
// CHECK: %[[W:.*]] = graph.cast %[[A]] {to = f32}
// CHECK: %[[S:.*]] = graph.mul %[[W]], %[[SIXTH]] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
// CHECK: %[[H:.*]] = graph.cast %[[S]] {to = f16}
// CHECK: graph.mul %[[M]], %[[H]] : (tensor<4x4xf16>, tensor<4x4xf16>)
func.func @exact_numbers(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %three = graph.constant dense<3.0> : tensor<f32>
  %sixth = graph.constant dense<0.16666667> : tensor<f32>
  %0 = graph.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = graph.add %0, %three : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %2 = graph.mul %1, %sixth : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %3 = graph.mul %0, %2 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %3 : tensor<4x4xf32>
}

// -----

// Products of floats of 8 bits, and their scales, leave the range of f16; what is made of one
// alone does not.
// CHECK-LABEL: @small_floats
// CHECK: %[[P:.*]] = graph.matmul %arg0, %arg1 : {{.*}} -> tensor<4x4xf32>
// CHECK: graph.mul %[[P]], %{{.*}} : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
// CHECK: graph.cast %arg0 {to = f16}
func.func @small_floats(%a: tensor<4x4xf8E4M3FN>, %b: tensor<4x4xf8E4M3FN>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %c = graph.constant dense<1.0e-5> : tensor<f32>
  %0 = graph.matmul %a, %b : (tensor<4x4xf8E4M3FN>, tensor<4x4xf8E4M3FN>) -> tensor<4x4xf32>
  %1 = graph.mul %0, %c : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %2 = graph.cast %a {to = f32} : (tensor<4x4xf8E4M3FN>) -> tensor<4x4xf32>
  %3 = graph.abs %2 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1, %3 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Of a coordinate and its floor the small type may lack what they differ by.
// CHECK-LABEL: @fraction
// CHECK: %[[F:.*]] = graph.floor %[[X:.*]] : (tensor<8xf32>) -> tensor<8xf32>
// CHECK: %[[D:.*]] = graph.sub %[[X]], %[[F]] : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
// CHECK: graph.cast %[[D]] {to = f16}
// BF16-LABEL: @fraction
// BF16: graph.sub %{{.*}} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
func.func @fraction(%x: tensor<8xf32>, %t: tensor<4000xf32>) -> tensor<8xf32> {
  %f = graph.floor %x : (tensor<8xf32>) -> tensor<8xf32>
  %i = graph.cast %f {to = i64} : (tensor<8xf32>) -> tensor<8xi64>
  %d = graph.sub %x, %f : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %v = graph.gather %t, %i {axis = 0 : i64} : (tensor<4000xf32>, tensor<8xi64>) -> tensor<8xf32>
  %y = graph.mul %v, %d : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// Whatever is between, and however they are told apart: a place with a constant added, in another shape, its remainder.
// CHECK-LABEL: @distances
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32>, %[[T:.*]]: tensor<4000xf32>)
// CHECK: %[[F:.*]] = graph.floor %[[X]] : (tensor<8xf32>) -> tensor<8xf32>
// CHECK: %[[G:.*]] = graph.add %[[F]], %{{.*}} : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK: graph.sub %[[G]], %[[X]] : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
// CHECK: %[[RX:.*]] = graph.reshape %[[X]] : (tensor<8xf32>) -> tensor<2x4xf32>
// CHECK: %[[RF:.*]] = graph.reshape %[[F]] : (tensor<8xf32>) -> tensor<2x4xf32>
// CHECK: graph.sub %[[RX]], %[[RF]] : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
// CHECK: graph.fmod %[[X]], %{{.*}} : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK: graph.mul %{{.*}}, %{{.*}} : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
func.func @distances(%x: tensor<8xf32>, %t: tensor<4000xf32>) -> (tensor<8xf32>, tensor<2x4xf32>, tensor<8xf32>) {
  %one = graph.constant dense<1.0> : tensor<f32>
  %f = graph.floor %x : (tensor<8xf32>) -> tensor<8xf32>
  %i = graph.cast %f {to = i64} : (tensor<8xf32>) -> tensor<8xi64>
  %g = graph.add %f, %one : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %d = graph.sub %g, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %rx = graph.reshape %x : (tensor<8xf32>) -> tensor<2x4xf32>
  %rf = graph.reshape %f : (tensor<8xf32>) -> tensor<2x4xf32>
  %e = graph.sub %rx, %rf : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %m = graph.fmod %x, %one : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %v = graph.gather %t, %i {axis = 0 : i64} : (tensor<4000xf32>, tensor<8xi64>) -> tensor<8xf32>
  %y = graph.mul %v, %d : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %y, %e, %m : tensor<8xf32>, tensor<2x4xf32>, tensor<8xf32>
}

// -----

// A table of weights that places look up gives activations, and so is what is added to them.
// CHECK-LABEL: @looked_up
// CHECK: graph.add %{{.*}}, %{{.*}} : (tensor<8x16xf16>, tensor<16xf16>) -> tensor<8x16xf16>
func.func @looked_up(%x: tensor<8xf32>) -> tensor<8x16xf32> {
  %w = graph.weight "table" : tensor<100x16xf32>
  %b = graph.weight "bias" : tensor<16xf32>
  %i = graph.cast %x {to = i64} : (tensor<8xf32>) -> tensor<8xi64>
  %v = graph.gather %w, %i {axis = 0 : i64} : (tensor<100x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
  %y = graph.add %v, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// -----

// Parts of one product that are added up stay in f32 until all are: they may
// leave the small type's range and cancel. Nothing else of the product does.
// CHECK-LABEL: @parts_of_a_product
// CHECK: %[[P:.*]] = graph.matmul {{.*}} -> tensor<4x12xf16>
// CHECK: %[[PW:.*]] = graph.cast %[[P]] {to = f32}
// CHECK: graph.slice %[[PW]]
// CHECK: %[[AB:.*]] = graph.add {{.*}} -> tensor<4x6xf32>
// CHECK: %[[ABC:.*]] = graph.sub %[[AB]], {{.*}} -> tensor<4x6xf32>
// CHECK: %[[R:.*]] = graph.cast %[[ABC]] {to = f16}
// CHECK: graph.tanh %[[R]] {{.*}} -> tensor<4x6xf16>
// BF16-LABEL: @parts_of_a_product
// BF16: graph.add {{.*}} -> tensor<4x6xf32>
func.func @parts_of_a_product(%x: tensor<4x8xf32>) -> tensor<4x6xf32> {
  %w = graph.weight "w" : tensor<8x12xf32>
  %zero = graph.constant dense<0.0> : tensor<f32>
  %p = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x12xf32>) -> tensor<4x12xf32>
  %a = graph.slice %p {starts = affine_map<() -> (0, 0)>, steps = array<i64: 1, 1>} : (tensor<4x12xf32>) -> tensor<4x6xf32>
  %b = graph.slice %p {starts = affine_map<() -> (0, 6)>, steps = array<i64: 1, 1>} : (tensor<4x12xf32>) -> tensor<4x6xf32>
  %c = graph.slice %p {starts = affine_map<() -> (0, 2)>, steps = array<i64: 1, 1>} : (tensor<4x12xf32>) -> tensor<4x4xf32>
  %d = graph.pad constant %c, %zero {lows = affine_map<() -> (0, 2)>} : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x6xf32>
  %ab = graph.add %a, %b : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %s = graph.sub %ab, %d : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %r = graph.tanh %s : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// Two products that are added up are two activations.
// CHECK-LABEL: @two_products
// CHECK: graph.add {{.*}} -> tensor<4x8xf16>
func.func @two_products(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %w = graph.weight "w" : tensor<8x8xf32>
  %a = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %b = graph.matmul %y, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %s = graph.add %a, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}

// -----

// A norm that is 1e-12 at least is no divisor of 0, which it were in the small type.
// CHECK-LABEL: func.func @statistics(
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32>
// CHECK:         %[[NORM:.*]] = graph.max %{{.*}}, %{{.*}} : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
// CHECK-NOT:     graph.cast %[[NORM]]
// CHECK:         graph.div %{{.*}}, %[[NORM]] : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
// CHECK:         graph.cast {{.*}} -> tensor<4x8xf16>
// CHECK:         graph.matmul {{.*}}xf16>
func.func @statistics(%x: tensor<4x8xf32>) -> tensor<4x4xf32> {
  %w = graph.weight "w" : tensor<8x4xf32>
  %least = graph.constant dense<1.0e-12> : tensor<f32>
  %p = graph.mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = graph.reduce sum %p {axes = array<i64: 1>, keepdims} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %r = graph.sqrt %s : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %m = graph.max %r, %least : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %n = graph.div %x, %m : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %y = graph.matmul %n, %w : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// What 1e-12 keeps from being 0 is no divisor of 0 either: it stays as it is
// until it is one, and so does the square that leads to it alone.
// CHECK-LABEL: func.func @guards(
// CHECK-DAG:     %[[E:.*]] = graph.constant dense<9.99999996E-13> : tensor<f32>
// CHECK:         %[[P:.*]] = graph.matmul {{.*}} -> tensor<4x4xf16>
// CHECK:         %[[W:.*]] = graph.cast %[[P]] {to = f32}
// CHECK:         %[[Q:.*]] = graph.mul %[[W]], %[[W]] : {{.*}} -> tensor<4x4xf32>
// CHECK:         %[[A:.*]] = graph.add %[[Q]], %[[E]] : {{.*}} -> tensor<4x4xf32>
// CHECK:         %[[R:.*]] = graph.sqrt %[[A]] : (tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK:         %[[Y:.*]] = graph.div %[[W]], %[[R]] : {{.*}} -> tensor<4x4xf32>
// CHECK:         %[[H:.*]] = graph.cast %[[Y]] {to = f16}
// CHECK:         graph.tanh %[[H]] : (tensor<4x4xf16>) -> tensor<4x4xf16>
// BF16-LABEL: func.func @guards(
// BF16:         graph.sqrt {{.*}} -> tensor<4x4xbf16>
func.func @guards(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %least = graph.constant dense<1.0e-12> : tensor<f32>
  %p = graph.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %q = graph.mul %p, %p : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %a = graph.add %q, %least : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %r = graph.sqrt %a : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = graph.div %p, %r : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %t = graph.tanh %y : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %t : tensor<4x4xf32>
}

// -----

// One that is added to an activation is one of the sum, that of a root of x² +
// 1e-5 is not tiny, and a factor is none at all: of 0 it makes 0. What it makes of
// others stays as small as it is for all but sums.
// CHECK-LABEL: func.func @guards_of_activations(
// CHECK:         %[[LEAST:.*]] = graph.select {{.*}} -> tensor<4x4xf32>
// CHECK:         %[[S:.*]] = graph.add %{{.*}}, %[[LEAST]] : {{.*}} -> tensor<4x4xf32>
// CHECK-NOT:     graph.cast %[[S]]
// CHECK:         graph.div %{{.*}}, %[[S]] : {{.*}} -> tensor<4x4xf32>
// CHECK:         %[[R:.*]] = graph.sqrt {{.*}} -> tensor<4x4xf32>
// CHECK:         %[[RX:.*]] = graph.add %[[R]], %{{.*}} -> tensor<4x4xf32>
// CHECK:         graph.cast %[[RX]] {to = f16}
// CHECK:         %[[F:.*]] = graph.mul {{.*}} -> tensor<4x4xf32>
// CHECK:         %[[FH:.*]] = graph.cast %[[F]] {to = f16}
// CHECK:         graph.add %[[FH]], %{{.*}} -> tensor<4x4xf16>
// CHECK:         %[[G:.*]] = graph.mul {{.*}} -> tensor<4x4xf32>
// CHECK-NEXT:    graph.sqrt %[[G]] : (tensor<4x4xf32>) -> tensor<4x4xf32>
func.func @guards_of_activations(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %zero = graph.constant dense<0.0> : tensor<f32>
  %more = graph.constant dense<1.0e-8> : tensor<f32>
  %less = graph.constant dense<-1.0e-8> : tensor<f32>
  %small = graph.constant dense<1.0e-5> : tensor<f32>
  %p = graph.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = graph.compare lt %p, %zero : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xi1>
  %e = graph.select %c, %less, %more : (tensor<4x4xi1>, tensor<f32>, tensor<f32>) -> tensor<4x4xf32>
  %s = graph.add %p, %e : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = graph.div %p, %s : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %t = graph.tanh %y : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %q = graph.mul %p, %p : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %a = graph.add %q, %small : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %r = graph.sqrt %a : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %rx = graph.add %r, %p : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %ry = graph.tanh %rx : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %f = graph.mul %p, %small : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %fx = graph.add %f, %p : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %fy = graph.tanh %fx : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %g = graph.mul %fy, %small : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %gy = graph.sqrt %g : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %t, %ry, %fy, %gy : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Numbers of both signs bound nothing: they are a bias that was not trained.
// CHECK-LABEL: func.func @small_biases(
// CHECK:         graph.add {{.*}} -> tensor<4x2xf16>
// CHECK:         graph.tanh {{.*}} -> tensor<4x2xf16>
func.func @small_biases(%x: tensor<4x8xf32>) -> tensor<4x2xf32> {
  %w = graph.weight "w" : tensor<8x2xf32>
  %b = graph.constant dense<[1.0e-6, -1.0e-6]> : tensor<2xf32>
  %p = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  %a = graph.add %p, %b : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  %t = graph.tanh %a : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return %t : tensor<4x2xf32>
}

// -----

// What may leave the small type's range stays in f32 where all that read it take
// it so, through what hands it on: sums, scans, and quotients by these. The
// quotient is an activation, as is what a product reads, too.
// CHECK-LABEL: func.func @far_from_operands(
// CHECK:         %[[P:.*]] = graph.matmul {{.*}} -> tensor<4x4xf16>
// CHECK:         %[[W:.*]] = graph.cast %[[P]] {to = f32}
// CHECK:         %[[E:.*]] = graph.exp %[[W]] : (tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK:         %[[S:.*]] = graph.reduce sum %[[E]]
// CHECK:         %[[D:.*]] = graph.div %[[E]], %[[S]] : {{.*}} -> tensor<4x4xf32>
// CHECK:         %[[DH:.*]] = graph.cast %[[D]] {to = f16}
// CHECK:         graph.tanh %[[DH]] : {{.*}} -> tensor<4x4xf16>
// CHECK:         %[[Q:.*]] = graph.mul %[[W]], %[[W]] : {{.*}} -> tensor<4x4xf32>
// CHECK:         %[[N:.*]] = graph.neg %[[Q]] : {{.*}} -> tensor<4x4xf32>
// CHECK:         %[[R:.*]] = graph.reshape %[[N]] : {{.*}} -> tensor<16xf32>
// CHECK:         graph.scan sum %[[R]]
// CHECK:         graph.abs {{.*}} -> tensor<4x4xf16>
// CHECK:         %[[X:.*]] = graph.exp {{.*}} -> tensor<4x4xf16>
// CHECK:         graph.matmul %[[X]], %[[X]]
func.func @far_from_operands(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<16xf32>, tensor<4x1xf32>, tensor<4x1xf32>) {
  %p = graph.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = graph.exp %p : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = graph.reduce sum %e {axes = array<i64: 1>, keepdims} : (tensor<4x4xf32>) -> tensor<4x1xf32>
  %d = graph.div %e, %s : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  %t = graph.tanh %d : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %q = graph.mul %p, %p : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %n = graph.neg %q : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = graph.reshape %n : (tensor<4x4xf32>) -> tensor<16xf32>
  %c = graph.scan sum %r {axis = 0 : i64} : (tensor<16xf32>) -> tensor<16xf32>
  %a = graph.abs %p : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %as = graph.reduce sum %a {axes = array<i64: 1>, keepdims} : (tensor<4x4xf32>) -> tensor<4x1xf32>
  %x2 = graph.exp %t : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = graph.matmul %x2, %x2 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %x2s = graph.reduce sum %x2 {axes = array<i64: 1>, keepdims} : (tensor<4x4xf32>) -> tensor<4x1xf32>
  %ys = graph.reduce sum %y {axes = array<i64: 1>, keepdims} : (tensor<4x4xf32>) -> tensor<4x1xf32>
  %sum = graph.add %x2s, %ys : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  return %d, %c, %as, %sum : tensor<4x4xf32>, tensor<16xf32>, tensor<4x1xf32>, tensor<4x1xf32>
}

// -----

// One of a row, or of what a condition chooses, may be tiny: so may the others' divisor be that.
// What moves such numbers, or combines them, does so in f32; an offset of 1 or 2 is none.
// CHECK-LABEL: func.func @guards_among_others(
// CHECK:         graph.add {{.*}} -> tensor<4x2xf16>
// CHECK:         %[[A:.*]] = graph.add {{.*}} -> tensor<4x2xf32>
// CHECK:         %[[P:.*]] = graph.pool max {{.*}} -> tensor<1x4x2xf32>
// CHECK:         %[[M:.*]] = graph.matmul {{.*}} -> tensor<4x2xf32>
// CHECK:         graph.div %{{.*}}, %[[M]] {{.*}} -> tensor<4x2xf32>
func.func @guards_among_others(%x: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<1x4x2xf32>, tensor<4x2xf32>) {
  %w = graph.weight "w" : tensor<2x2xf32>
  %least = graph.constant dense<[1.0e-12, 1.0e-3]> : tensor<2xf32>
  %none = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = graph.abs %x : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %1 = graph.add %0, %none : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  %t = graph.tanh %1 : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %2 = graph.add %0, %least : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  %3 = graph.reshape %2 : (tensor<4x2xf32>) -> tensor<1x4x2xf32>
  %4 = graph.pool max %3 {channels_last, dilations = array<i64: 1>, kernel = array<i64: 1>, pads = array<i64: 0, 0>, strides = array<i64: 1>} : (tensor<1x4x2xf32>) -> tensor<1x4x2xf32>
  %5 = graph.matmul %2, %w : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %6 = graph.div %x, %5 : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %t, %4, %6 : tensor<4x2xf32>, tensor<1x4x2xf32>, tensor<4x2xf32>
}

// -----

// What a step finds and gives lies in memory in f32: a sum that it carries is not
// rounded in between, nor what leads to that from the function in front. What is
// between is, as anywhere.
// CHECK-LABEL: func.func private @step(
// CHECK-SAME:    %[[SUM:.*]]: tensor<4x4xf32>, %[[SQUARES:.*]]: tensor<4x4xf32>, %[[H:.*]]: tensor<4x4xf32>
// CHECK:         %[[HH:.*]] = graph.cast %[[H]] {to = f16}
// CHECK:         %[[S:.*]] = graph.add %[[SUM]], %[[SQUARES]]
// CHECK:         graph.matmul %[[HH]], %[[HH]] {{.*}} -> tensor<4x4xf16>
// CHECK:         graph.exp {{.*}} -> tensor<4x4xf16>
// CHECK:         %[[T:.*]] = graph.add {{.*}} -> tensor<4x4xf32>
// CHECK:         return %[[S]], %[[T]]
func.func private @step(%sum: tensor<4x4xf32>, %squares: tensor<4x4xf32>, %h: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %s = graph.add %sum, %squares : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %p = graph.matmul %h, %h : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = graph.exp %p : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %q = graph.matmul %e, %e : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %t = graph.add %h, %q : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %s, %t : tensor<4x4xf32>, tensor<4x4xf32>
}
