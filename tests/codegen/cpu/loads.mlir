// RUN: charonia-opt %s -print-cpu-code -o /dev/null | FileCheck %s
// A row that all lanes share the check of chooses its address; a ragged end is a mask;
// what is loaded through an index is gathered. Nothing branches on an element.
func.func @rows(%x: !tile.buffer<f32>, %y: !tile.buffer<f32>, %n: index) attributes {tile.kernel} {
  // CHECK-LABEL: define void @rows
  // CHECK: instance:
  // CHECK: icmp ult i64
  // CHECK: select i1 %{{.*}}, ptr %{{.*}}, ptr @zeros
  // CHECK-NOT: br
  // CHECK: load <16 x float>
  // CHECK-NOT: br
  // CHECK: select i1 %{{.*}}, ptr
  // CHECK-NEXT: store <16 x float>
  %pid = tile.program_id : index
  %a = tile.load %x[%pid, %n] {map = affine_map<(d0)[s0, s1] -> (s0 + 3, d0)>, shape = affine_map<()[s0, s1] -> (s1, 16)>, rank = 2 : i64, checks = array<i64: 0>} : (!tile.buffer<f32>, index, index) -> tensor<16xf32>
  tile.store %a, %y[%pid, %n] {map = affine_map<(d0)[s0, s1] -> (s0, d0)>, shape = affine_map<()[s0, s1] -> (s1, 16)>, rank = 2 : i64, checks = array<i64: 0>} : tensor<16xf32>, !tile.buffer<f32>, index, index
  return
}
func.func @ends(%x: !tile.buffer<f32>, %y: !tile.buffer<f32>, %n: index) attributes {tile.kernel} {
  // CHECK-LABEL: define void @ends
  // CHECK: instance:
  // CHECK: icmp {{.*}}<16 x i32>
  // CHECK: call <16 x float> @llvm.masked.load
  // CHECK: call void @llvm.masked.store
  %pid = tile.program_id : index
  %a = tile.load %x[%pid, %n] {map = affine_map<(d0)[s0, s1] -> (s0 * 16 + d0)>, shape = affine_map<()[s0, s1] -> (s1)>, rank = 1 : i64, checks = array<i64: 0>} : (!tile.buffer<f32>, index, index) -> tensor<16xf32>
  tile.store %a, %y[%pid, %n] {map = affine_map<(d0)[s0, s1] -> (s0 * 16 + d0)>, shape = affine_map<()[s0, s1] -> (s1)>, rank = 1 : i64, checks = array<i64: 0>} : tensor<16xf32>, !tile.buffer<f32>, index, index
  return
}
// A check that all lanes share chooses the address beside a mask, too: where there is no
// memory a masked access takes hundreds of cycles to see that it wants none of it.
func.func @rows_and_ends(%x: !tile.buffer<f32>, %y: !tile.buffer<f32>, %m: index, %n: index) attributes {tile.kernel} {
  // CHECK-LABEL: define void @rows_and_ends
  // CHECK: instance:
  // CHECK: %[[ROW:.*]] = select i1 %{{.*}}, ptr %{{.*}}, ptr @zeros
  // CHECK: call <16 x float> @llvm.masked.load{{.*}}(ptr {{.*}}%[[ROW]],
  // CHECK: %[[TO:.*]] = select i1 %{{.*}}, ptr
  // CHECK-NEXT: call void @llvm.masked.store{{.*}}, ptr {{.*}}%[[TO]],
  %pid = tile.program_id : index
  %a = tile.load %x[%pid, %m, %n] {map = affine_map<(d0)[s0, s1, s2] -> (s0 + 3, d0)>, shape = affine_map<()[s0, s1, s2] -> (s1, s2)>, rank = 2 : i64, checks = array<i64: 0, 1>} : (!tile.buffer<f32>, index, index, index) -> tensor<16xf32>
  tile.store %a, %y[%pid, %m, %n] {map = affine_map<(d0)[s0, s1, s2] -> (s0, d0)>, shape = affine_map<()[s0, s1, s2] -> (s1, s2)>, rank = 2 : i64, checks = array<i64: 0, 1>} : tensor<16xf32>, !tile.buffer<f32>, index, index, index
  return
}
func.func @gather(%x: !tile.buffer<f32>, %i: !tile.buffer<i64>, %y: !tile.buffer<f32>) attributes {tile.kernel} {
  // CHECK-LABEL: define void @gather
  // CHECK: call <16 x float> @llvm.masked.gather
  %r = tile.load %i[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (16)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<i64>) -> tensor<16xi64>
  %ri = arith.index_cast %r : tensor<16xi64> to tensor<16xindex>
  %a = tile.load %x[%ri] {map = affine_map<(d0)[s0] -> (s0)>, shape = affine_map<()[s0] -> (100)>, rank = 1 : i64, checks = array<i64: 0>} : (!tile.buffer<f32>, tensor<16xindex>) -> tensor<16xf32>
  tile.store %a, %y[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (16)>, rank = 1 : i64, checks = array<i64>} : tensor<16xf32>, !tile.buffer<f32>
  return
}

// Of a row from which data choose more elements than it has lines of the cache, these are
// asked for in front, by the first tile of the row.
func.func @chosen(%x: !tile.buffer<f32>, %i: !tile.buffer<i64>, %y: !tile.buffer<f32>) attributes {tile.kernel} {
  // CHECK-LABEL: define void @chosen
  // CHECK: %[[OLD:.*]] = icmp eq ptr
  // CHECK: select i1 %[[OLD]], i64 0, i64 7
  // CHECK: lines:
  // CHECK: call void @llvm.prefetch
  // CHECK: lines.end:
  // CHECK: call <16 x float> @llvm.masked.gather
  %r = tile.load %i[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (64)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<i64>) -> tensor<64xi64>
  %ri = arith.index_cast %r : tensor<64xi64> to tensor<64xindex>
  %a = tile.load %x[%ri] {map = affine_map<(d0)[s0] -> (s0)>, shape = affine_map<()[s0] -> (100)>, rank = 1 : i64, checks = array<i64: 0>} : (!tile.buffer<f32>, tensor<64xindex>) -> tensor<64xf32>
  tile.store %a, %y[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (64)>, rank = 1 : i64, checks = array<i64>} : tensor<64xf32>, !tile.buffer<f32>
  return
}

// So are those of a row of open length, where it is no longer when the kernel runs.
func.func @chosen_open(%x: !tile.buffer<f32>, %i: !tile.buffer<i64>, %y: !tile.buffer<f32>, %n: index) attributes {tile.kernel} {
  // CHECK-LABEL: define void @chosen_open
  // CHECK: icmp ult i64 %{{.*}}, 2112
  // CHECK: lines:
  // CHECK: call void @llvm.prefetch
  // CHECK: lines.end:
  // CHECK: call <16 x float> @llvm.masked.gather
  // CHECK-NOT: call void @llvm.prefetch
  %r = tile.load %i[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (64)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<i64>) -> tensor<64xi64>
  %ri = arith.index_cast %r : tensor<64xi64> to tensor<64xindex>
  %a = tile.load %x[%ri, %n] {map = affine_map<(d0)[s0, s1] -> (s0)>, shape = affine_map<()[s0, s1] -> (s1)>, rank = 1 : i64, checks = array<i64: 0>} : (!tile.buffer<f32>, tensor<64xindex>, index) -> tensor<64xf32>
  tile.store %a, %y[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (64)>, rank = 1 : i64, checks = array<i64>} : tensor<64xf32>, !tile.buffer<f32>
  return
}

// Lanes that lie a known way apart are picked from runs of memory.
func.func @apart(%x: !tile.buffer<f32>, %y: !tile.buffer<f32>) attributes {tile.kernel} {
  // CHECK-LABEL: define void @apart
  // CHECK-NOT: gather
  // CHECK: load <16 x float>
  // CHECK: load <16 x float>
  // CHECK: shufflevector <16 x float>
  // CHECK-NOT: gather
  // CHECK: load <8 x float>
  // CHECK: shufflevector <8 x float>
  // CHECK-NOT: gather
  %pid = tile.program_id : index
  %a = tile.load %x[%pid] {map = affine_map<(d0)[s0] -> (s0, d0 * 2)>, shape = affine_map<()[s0] -> (8, 32)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<16xf32>
  tile.store %a, %y[%pid] {map = affine_map<(d0)[s0] -> (s0, d0)>, shape = affine_map<()[s0] -> (16, 16)>, rank = 2 : i64, checks = array<i64>} : tensor<16xf32>, !tile.buffer<f32>, index
  %b = tile.load %x[%pid] {map = affine_map<(d0)[s0] -> (s0, d0 floordiv 2)>, shape = affine_map<()[s0] -> (8, 32)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<16xf32>
  tile.store %b, %y[%pid] {map = affine_map<(d0)[s0] -> (s0 + 8, d0)>, shape = affine_map<()[s0] -> (16, 16)>, rank = 2 : i64, checks = array<i64>} : tensor<16xf32>, !tile.buffer<f32>, index
  return
}
// Every second element from one in front of the row on: runs of memory, of which the lanes' own
// elements are touched and no other.
func.func @spread(%x: !tile.buffer<f32>, %y: !tile.buffer<f32>) attributes {tile.kernel} {
  // CHECK-LABEL: define void @spread
  // CHECK-NOT: gather
  // CHECK: call <16 x float> @llvm.masked.load
  // CHECK-NOT: gather
  // CHECK: shufflevector
  // CHECK-NOT: gather
  // CHECK: store <16 x float>
  %pid = tile.program_id : index
  %a = tile.load %x[%pid] {map = affine_map<(d0)[s0] -> (s0, d0 * 2 - 1)>, shape = affine_map<()[s0] -> (64, 32)>, rank = 2 : i64, checks = array<i64: 1>} : (!tile.buffer<f32>, index) -> tensor<16xf32>
  tile.store %a, %y[%pid] {map = affine_map<(d0)[s0] -> (s0, d0)>, shape = affine_map<()[s0] -> (64, 16)>, rank = 2 : i64, checks = array<i64>} : tensor<16xf32>, !tile.buffer<f32>, index
  return
}
// Positions beside one of them are told by lanes of 32 bits.
func.func @diagonal(%y: !tile.buffer<f32>, %n: index) attributes {tile.kernel} {
  // CHECK-LABEL: define void @diagonal
  // CHECK-NOT: icmp {{.*}}<16 x i64>
  // CHECK: icmp {{.*}}<16 x i32>
  // CHECK-NEXT: select <16 x i1> %{{.*}}, <16 x float> splat (float 1.000000e+00)
  %pid = tile.program_id : index
  %a = tile.index[%n] {map = affine_map<(d0)[s0] -> (d0 + s0 * 16)>} : (index) -> tensor<16xindex>
  %b = tile.index[%pid] {map = affine_map<(d0)[s0] -> (s0)>} : (index) -> tensor<16xindex>
  %c = arith.cmpi eq, %a, %b : tensor<16xindex>
  %d = arith.uitofp %c : tensor<16xi1> to tensor<16xf32>
  tile.store %d, %y[%pid] {map = affine_map<(d0)[s0] -> (s0, d0)>, shape = affine_map<()[s0] -> (64, 16)>, rank = 2 : i64, checks = array<i64>} : tensor<16xf32>, !tile.buffer<f32>, index
  return
}
// Lanes in three clusters, far apart (rows that are interleaved): a run of memory for each, no gather.
func.func @clusters(%x: !tile.buffer<f32>, %y: !tile.buffer<f32>) attributes {tile.kernel} {
  // CHECK-LABEL: define void @clusters
  // CHECK: instance:
  // CHECK-COUNT-3: load <8 x float>
  // CHECK-NOT: load
  // CHECK-NOT: gather
  // CHECK: store <16 x float>
  %pid = tile.program_id : index
  %a = tile.load %x[%pid] {map = affine_map<(d0)[s0] -> (d0 mod 3, d0 floordiv 3 + s0 * 16)>, shape = affine_map<()[s0] -> (3, 16000)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<16xf32>
  tile.store %a, %y[%pid] {map = affine_map<(d0)[s0] -> (s0 * 48 + d0)>, shape = affine_map<()[s0] -> (48000)>, rank = 1 : i64, checks = array<i64>} : tensor<16xf32>, !tile.buffer<f32>, index
  return
}
// Lanes apart of which some lie outside: what is loaded around them has its own bounds, and
// whether lanes are inside is the same mask, found in 32 bits.
func.func @apart_inside(%x: !tile.buffer<f32>, %y: !tile.buffer<f32>, %n: index) attributes {tile.kernel} {
  // CHECK-LABEL: define void @apart_inside
  // CHECK-NOT: shufflevector <16 x i1>
  // CHECK-NOT: icmp {{.*}}<16 x i64>
  // CHECK: call <16 x float> @llvm.masked.load
  // CHECK-NOT: shufflevector <16 x i1>
  // CHECK: call <16 x float> @llvm.masked.load
  // CHECK-NOT: icmp {{.*}}<16 x i64>
  // CHECK: store <16 x float>
  %pid = tile.program_id : index
  %c = arith.constant dense<-1.0> : tensor<16xf32>
  %a = tile.load %x[%pid, %n] {map = affine_map<(d0)[s0, s1] -> (s0, d0 * 2 - 1)>, shape = affine_map<()[s0, s1] -> (64, s1)>, rank = 2 : i64, checks = array<i64: 1>} : (!tile.buffer<f32>, index, index) -> tensor<16xf32>
  %in = tile.in_bounds[%n] {map = affine_map<(d0)[s0] -> (d0 * 2 - 1)>, shape = affine_map<()[s0] -> (s0)>} : (index) -> tensor<16xi1>
  %b = arith.select %in, %a, %c : tensor<16xi1>, tensor<16xf32>
  tile.store %b, %y[%pid] {map = affine_map<(d0)[s0] -> (s0, d0)>, shape = affine_map<()[s0] -> (64, 16)>, rank = 2 : i64, checks = array<i64>} : tensor<16xf32>, !tile.buffer<f32>, index
  return
}
// Lanes that share elements, as those of an enlarged row do: bounds that are plain are found of the
// first lane, and what is loaded has bounds of its own. The lanes' bounds remain: a neighbour's element is no zero.
func.func @shared_inside(%x: !tile.buffer<f32>, %y: !tile.buffer<f32>, %n: index) attributes {tile.kernel} {
  // CHECK-LABEL: define void @shared_inside
  // CHECK-NOT: <16 x i64>
  // CHECK-NOT: shufflevector <16 x i1>
  // CHECK: call <16 x float> @llvm.masked.load.v16f32
  // CHECK-NOT: shufflevector <16 x i1>
  // CHECK: ret void
  %pid = tile.program_id : index
  %a = tile.load %x[%pid, %n] {map = affine_map<(d0)[s0, s1] -> ((d0 + 1) floordiv 2 + s0 * 8 - 1, d0 + s0 * 16 - 1)>, shape = affine_map<()[s0, s1] -> (s1, s1 * 2)>, rank = 1 : i64, checks = array<i64: 1>} : (!tile.buffer<f32>, index, index) -> tensor<16xf32>
  tile.store %a, %y[%pid, %n] {map = affine_map<(d0)[s0, s1] -> (s0 * 16 + d0)>, shape = affine_map<()[s0, s1] -> (48000)>, rank = 1 : i64, checks = array<i64>} : tensor<16xf32>, !tile.buffer<f32>, index, index
  return
}
// A check that all lanes share chooses the address of such lanes, too, which are one masked load all the same.
func.func @shared_row(%x: !tile.buffer<f32>, %y: !tile.buffer<f32>, %n: index) attributes {tile.kernel} {
  // CHECK-LABEL: define void @shared_row
  // CHECK: %[[PLACE:.*]] = select i1 %{{.*}}, ptr %{{.*}}, ptr @zeros
  // CHECK-NOT: gather
  // CHECK: call <16 x float> @llvm.masked.load.v16f32{{.*}}(ptr {{.*}}%[[PLACE]],
  // CHECK-NOT: gather
  // CHECK: ret void
  %pid = tile.program_id : index
  %a = tile.load %x[%pid, %n] {map = affine_map<(d0)[s0, s1] -> (s0 - 1, (d0 + 1) floordiv 2 - 1, d0 - 1)>, shape = affine_map<()[s0, s1] -> (64, s1, s1 * 2)>, rank = 2 : i64, checks = array<i64: 0, 2>} : (!tile.buffer<f32>, index, index) -> tensor<16xf32>
  tile.store %a, %y[%pid, %n] {map = affine_map<(d0)[s0, s1] -> (s0 * 16 + d0)>, shape = affine_map<()[s0, s1] -> (48000)>, rank = 1 : i64, checks = array<i64>} : tensor<16xf32>, !tile.buffer<f32>, index, index
  return
}
// Lanes in three planes of a tensor whose size is open: what is between planes is known when it runs, so each is a
// run of memory, of which nothing behind its last lane is read, and lanes are picked.
func.func @planes(%x: !tile.buffer<f32>, %y: !tile.buffer<f32>, %n: index) attributes {tile.kernel} {
  // CHECK-LABEL: define void @planes
  // CHECK-NOT: gather
  // CHECK: call <8 x float> @llvm.masked.load.v8f32{{.*}}<8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false>
  // CHECK: call <8 x float> @llvm.masked.load.v8f32{{.*}}<8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>
  // CHECK: shufflevector
  // CHECK: call <8 x float> @llvm.masked.load.v8f32
  // CHECK-NOT: gather
  // CHECK: ret void
  %pid = tile.program_id : index
  %a = tile.load %x[%pid, %n] {map = affine_map<(d0)[s0, s1] -> (d0 mod 3, s0 * 16 + d0 floordiv 3)>, shape = affine_map<()[s0, s1] -> (3, s1)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>, index, index) -> tensor<16xf32>
  tile.store %a, %y[%pid] {map = affine_map<(d0)[s0] -> (s0, d0)>, shape = affine_map<()[s0] -> (64, 16)>, rank = 2 : i64, checks = array<i64>} : tensor<16xf32>, !tile.buffer<f32>, index
  return
}
