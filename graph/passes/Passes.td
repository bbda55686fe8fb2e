// Passes on the graph dialect: what each wants, what it leaves, where it stands.
#ifndef CHARONIA_GRAPH_PASSES
#define CHARONIA_GRAPH_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Cleaning up what an importer leaves
//===----------------------------------------------------------------------===//

def EvaluateShapes : Pass<"evaluate-shapes", "mlir::func::FuncOp"> {
  let summary = "Shape arithmetic becomes expressions over shape symbols";
  let description = [{
    Before: chains of `shape_of`, `gather`, `concat`, `mul`, ... on small integer
    tensors. After: a `graph.constant`, or a `graph.dims` where symbols are
    involved, for each of these tensors that something else reads; the chains are
    gone. Runs first, because constants and static views come out of it.
  }];
}

def RecoverRanges : Pass<"recover-ranges", "mlir::func::FuncOp"> {
  let summary = "Stored positions and masks become ranges";
  let description = [{
    Before: constants and weights whose integers grow evenly along their dimensions,
    and masks that are true, or 0 where others hold one number below it, in bands: up
    to the diagonal, in a window along it. After: `iota`, sums and comparisons of it.
    Of those the next passes know what each element is: a causal mask is an attribute
    of an attention, and a window bounds its loop. Runs behind `evaluate-shapes`, which
    makes constants of small ranges.
  }];
}

def ResolveIndices : Pass<"resolve-indices", "mlir::func::FuncOp"> {
  let summary = "Indices and masks made of ranges become views and constants";
  let description = [{
    Before: `gather` and `gather_nd` by tensors whose elements are functions of their
    coordinates (positions made by `iota`), and comparisons of such tensors that
    hold everywhere. After: slices, reshapes and broadcasts of the input, and
    constants. Runs before patterns are recognized, because masks get simpler.
  }];
}

def ResolveScatters : Pass<"resolve-scatters", "mlir::func::FuncOp"> {
  let summary = "Scatters by known indices become slices and concatenations, or a choice";
  let description = [{
    Before: `scatter_nd` by constants or by functions of coordinates, as exporters write
    assignments to slices. After: where the indices fill a box, the parts around it and the
    updates, concatenated; slices of these read the part that has them. Where they do not,
    a constant says for each place which update is its last, and a `select` chooses. Both
    cost what they write, where a scatter compares each element with each update.
  }];
}

def SimplifyViews : Pass<"simplify-views", "mlir::func::FuncOp"> {
  let summary = "Chains of views become the fewest that mean the same";
  let description = [{
    Composes the maps of a chain of views and builds it anew as slice, reshape,
    transpose, reshape, broadcast, where that takes fewer. A transpose of merged
    heads between two reshapes becomes one transpose. What is joined between
    transposes that mostly cancel is joined as it lies. What is computed of weights that are
    repeated is computed once, and repeated.
  }];
}

def SimplifyAlgebra : Pass<"simplify-algebra", "mlir::func::FuncOp"> {
  let summary = "Algebraic identities";
  let description = [{
    x / c becomes x * (1 / c), x ^ 0.5 sqrt(x), 1 / sqrt(x) rsqrt(x), neutral
    elements and double negations go, constants of chains join. Results may change
    in the last digit. Runs after shapes are constants, and before patterns are
    recognized, which then come in one form instead of several.
  }];
}

def OutlineSteps : Pass<"outline-steps", "mlir::ModuleOp"> {
  let summary = "Steps whose number is open become a function that is repeated";
  let description = [{
    Before: `graph.iterate` in @main, whose steps are what depends on `graph.carried` values and on the symbol
    that counts. After: a function for them, one for what is between two loops, and in @main nothing but calls
    (`graph.repeat`, `func.call`). So each function is a straight line, as all other passes know them, and nothing of a
    step can leave it. Constants and weights are copied to their readers. Runs first.
  }];
}

def StackSteps : Pass<"stack-steps", "mlir::func::FuncOp"> {
  let summary = "What steps compute of their own parts of a tensor alone is computed for all of them at once";
  let description = [{
    Before: loops written out, where step t multiplies element t of a sequence with weights that
    all steps share, as the cells of recurrent layers do. After: one contraction of the whole
    sequence, of whose result each step reads its part. What is in between, views and pointwise
    operators, is computed of the whole sequence, too. What depends on the step before stays. Runs
    once equal values are one, and chains of views short.
  }];
}

def RecognizePatterns : Pass<"recognize-patterns", "mlir::func::FuncOp"> {
  let summary = "Attention, normalizations, softmax and gelu that arrive in pieces";
  let description = [{
    Before: matmul, scales, masks, softmax, matmul; means, squares and rsqrt; exp
    over its sum; products with erf or tanh. After: `attention`, `normalize`,
    `softmax`, `gelu`. A mask that provably is causal becomes the attribute, any
    other stays an operand. A row of which nothing is kept gives what it did before:
    NaN, zeros behind a guard, a mean under finite fills. Runs after algebra and
    views are simple, and before layouts and precision put casts and transposes
    between the pieces.
  }];
}

def FoldScales : Pass<"fold-scales", "mlir::func::FuncOp"> {
  let summary = "Scales of a contraction's columns move into its weights";
  let description = [{
    Before: `conv(x, w) + b`, then the `mul` by a scale and the `add` of a shift for
    each channel, which a batch normalization is. After: `conv(x, w * scale) + (b *
    scale + shift)`. Scales pass what is linear in one operand: signs, sums,
    conversions to a smaller type. The new weights are expressions, which split-prepare computes
    when the model is built. Runs before contractions are merged and layouts are
    assigned: later, views stand between.
  }];
}

def RefineReductions : Pass<"refine-reductions", "mlir::func::FuncOp"> {
  let summary = "Reductions take the dimensions that a reshape in front of them merged";
  let description = [{
    Before: `reshape [1, 96, 32, 32] -> [1, 8, 12288]` and a reduction or normalization
    over the last dimension, as exporters write group normalization. After: the same over
    the last three of [1, 8, 12, 32, 32], with reshapes around it that split or merge
    neighbours only. Runs before layouts are assigned: transposes sink through such
    reshapes, and not through the others.
  }];
}

def AssignLayouts : Pass<"assign-layouts", "mlir::func::FuncOp"> {
  let summary = "Channels last for convolutions and pools";
  let description = [{
    Before: [N, C, S...], as frameworks have it. After: convolutions and pools read
    and write [N, S..., C], so that products run along contiguous memory on every
    device, with transposes at the edges: transposes sink through operators that can
    do their work under permuted dimensions, and cancel where they meet. Other
    transposes of activations sink as well. Decided once, for all targets.
  }];
}

def AssignPrecision : Pass<"assign-precision", "mlir::func::FuncOp"> {
  let summary = "Activations in the type that the user asks for";
  let description = [{
    fp16, bf16: activations of f32 get that type. Inputs and outputs keep the type of
    the signature; weights keep theirs and are cast where an activation meets them,
    which split-prepare takes. In f32 stay what is computed from integers alone
    (positions, masks), weights-only expressions, and reductions with what follows
    them before activations do: sums overflow small types. So does what may be so
    large that the type lacks it, or loses 1 beside it (on the way to a softmax: more
    than 2^-6), up to the operator that bounds it again: masks of -1e9, built in the
    model, stored, or given as an input that a softmax or an attention reads; other
    readers of such an input take it as they take any. Of what is computed of weights
    and integers by an operator without a rule for ranges the numbers may be any. A
    contraction takes such numbers clamped to the finite range of the type, infinities
    as they are. So does, too, what a constant that the type rounds to 0, or to few
    digits, keeps from being 0, as x² + 1e-12, up to the quotient or logarithm of it,
    and what leads to it alone, whatever moves or combines it; and what may be far from the
    activations it is made of, as products, quotients and exponentials, where all that
    read it take it in f32: reductions, scans, quotients by these, and what hands it on
    to such readers alone. What steps find and give lies in memory in f32, so they take and
    give it as it is. Other types are left alone. fp32 and tf32 change
    nothing: they concern products inside of kernels. Runs after recognition and
    layouts, which see no casts, and before kernels are formed, which fuse them.
  }];
  let options = [Option<"precision", "precision", "std::string", "\"fp32\"",
                        "fp32, tf32, fp16 or bf16">];
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

def MergeContractions : Pass<"merge-contractions", "mlir::func::FuncOp"> {
  let summary = "One contraction where several read the same operand";
  let description = [{
    Contractions that differ in their stationary operand alone (the weights of
    the query, key and value projections) become one with the weights side by
    side; its result is sliced. Pointwise operators with weights that follow each
    of them in the same way (a bias) move in front of the slices. Of `apartRows`
    rows or more those whose results meet element by element, as a gate and what
    passes it, stay as they are.
  }];
  let options = [
    Option<"apartRows", "apart-rows", "int64_t", "0", "Rows from which results that meet are computed apart; 0: never">];
}

def OrderTerms : Pass<"order-terms", "mlir::ModuleOp"> {
  let summary = "Products with weights take their terms in the order of memory";
  let description = [{
    Before: a product with weights whose other operand is a view that puts what lies in memory
    in another order along the terms, as [N, H, W, C] that is flattened to [N, C * H * W], perhaps
    under operators element by element. After: the view without that order, and the weights in
    that of memory, which split-prepare stores (`setStored`). Weights of many bytes that others
    read in their own order stay as they are, and so do narrow ones that are widened where they
    are multiplied, and what others read moved: it may be stored for them. Runs once layouts are assigned, and before weights are joined or packed.
  }];
  let options = [
    Option<"mostTwice", "most-twice", "int64_t", "1 << 20",
           "Bytes of weights that may be stored in both orders">
  ];
}

def PairColumns : Pass<"pair-columns", "mlir::func::FuncOp"> {
  let summary = "Columns that meet element by element become neighbours";
  let description = [{
    Two products of the same rows with weights whose results meet element by element, as a gate and what
    passes it do, become one with runs of the columns of both in turn, and so do the halves of one product's
    columns: a tile then has what meets (`cell_part`), and one kernel does all.
  }];
  let options = [
    Option<"leastRows", "least-rows", "int64_t", "16", "Rows of which products are joined, or more">];
}

def RotateColumns : Pass<"rotate-columns", "mlir::func::FuncOp"> {
  let summary = "Vectors whose halves meet are rotated where a product gives them";
  let description = [{
    Rotary embeddings compute x cos + swapped(x) sin of each head's vector x, swapped(x) being its halves in
    the other order, one negated. Where heads are columns of one product, that is computed of all heads in turn, in the
    shape of these columns, and chosen where it is wanted (`swap_halves`): the product's kernel does it, as its tiles have
    whole vectors.
  }];
  let options = [
    Option<"leastRows", "least-rows", "int64_t", "16", "Rows of which products rotate their columns, or more">];
}

def NormalizeProducts : Pass<"normalize-products", "mlir::func::FuncOp"> {
  let summary = "Rows are normalized behind the products that read them";
  let description = [{
    A factor and a shift for each row commute with a product:
    norm(x) W = (x (g W) - mean(x) columns(g W)) / deviation(x) + s W, for norm(x) = g (x - mean) / deviation + s.
    Where a product gives rows of a small type, and all that read them normalized are products with
    weights, the first one's kernel also adds up runs of each row and of its squares (`sum_runs`),
    these of distances from each run's own mean where rows have means,
    the others read the rows as they are (`normalized_matmul`), and no kernel normalizes. g W and s W
    are made in f32 of the weights as they are there and rounded once; sums of columns and of runs
    are those of what was rounded. What else reads the rows where a product ends normalizes them itself (`normalize_rows`).
    Rows may move as a whole between that product and the normalization, through views, where each has a place.
    For GPU targets, of `leastRows` to `mostRows` rows: of more a kernel that normalizes takes
    less than what it does to the others.
  }];
  let options = [
    Option<"leastRows", "least-rows", "int64_t", "16", "Rows from which on it pays">,
    Option<"mostRows", "most-rows", "int64_t", "1024", "Rows up to which it pays">,
    Option<"mostRowsBeside", "most-rows-beside", "int64_t", "256", "The same where others read them, too">];
}

def SplitWindows : Pass<"split-windows", "mlir::func::FuncOp"> {
  let summary = "Large windows slide along one dimension after the other";
  let description = [{
    A window of 5 x 5 combines 25 elements for each of the result. Before: an operator with
    a window (`getWindow`) of several dimensions. After: one that slides along the first of them, with
    its result in memory, and others along the rest, 10 elements, where that saves a third of all
    accesses and `leastSaved` of them. Floats that are added stay in f32 between them. Runs right
    before kernels are formed.
  }];
  let options = [
    Option<"leastSaved", "least-saved", "int64_t", "65536", "Accesses to elements that are worth a kernel">];
}

def FoldPadding : Pass<"fold-padding", "mlir::func::FuncOp"> {
  let summary = "Padding moves into the operators that pad what they read";
  let description = [{
    A `pad` by a constant in front of an operator that can read the same around its operand
    (`getPaddedForm`: zeros around a convolution or an average, any value around a maximum) becomes
    attributes of the operator. After layouts, which bring the two together.
  }];
}

def BoundProducts : Pass<"bound-products", "mlir::func::FuncOp"> {
  let summary = "Notes products of bytes of which two fit 16 bits";
  let description = [{
    What bytes a weight has is known: of weights within -64 and 64, as quantizers make
    them for CPUs without VNNI ("reduced range"), any two products by bytes without a sign
    add up to 16 bits, so that an instruction that adds pairs up in 16 bits is exact. The
    contraction is given the attribute `graph.pairs_fit`. For CPU targets.
  }];
}

def StorePadding : Pass<"store-padding", "mlir::func::FuncOp"> {
  let summary = "Zeros around an image of few channels are stored with it";
  let description = [{
    A contraction that slides a window over an operand takes each pixel's channels
    at once. Where they are fewer than `fewest`, it takes a whole row of the window
    instead, which is one run of memory only if the zeros around the image are in
    memory as well. So they are: a `graph.pad` goes in front of the operand. The same before
    large windows of single channels, which would check each element for each neighbour.
    For CPU targets.
  }];
  let options = [
    Option<"fewest", "fewest", "int64_t", "8", "Channels that are enough">,
    Option<"largeWindow", "large-window", "int64_t", "25",
           "Elements of a window, of a contraction that is no product of tiles, from which on zeros are stored">];
}

def PackWeights : Pass<"pack-weights", "mlir::ModuleOp"> {
  let summary = "Stores the weights of contractions in panels of columns";
  let description = [{
    For a contraction whose stationary operand depends on weights alone, adds the
    packing [.., N, ..] -> [N / panel, .., panel] to @prepare and the inverse views
    in front of the operand, which code generation composes into its loads: a
    panel of columns is then one run of memory. For CPU targets.
  }];
  let options = [
    Option<"panel", "panel", "int64_t", "32", "Columns of a panel">,
    Option<"minColumns", "min-columns", "int64_t", "8", "Fewer columns are left as they are">];
}

def PackColumns : Pass<"pack-columns", "mlir::func::FuncOp"> {
  let summary = "What is multiplied as if it were a weight is packed on the way";
  let description = [{
    Right before kernels are formed. The stationary operand of a contraction that no weight
    makes, where many tiles of rows read it and its rows lie so far apart that the lines of a panel's
    columns displace each other in the cache: a multiple of many lines, as powers of two
    are. Packs it as pack-weights does ([.., N, ..] -> [N / panel, .., panel]) in a kernel of its
    own (`setStored`), which what computes it may be part of. Keys and values that many rows
    of queries pass over (getStreamedOperands) are stored as they are passed over. For CPU
    targets.
  }];
  let options = [
    Option<"panel", "panel", "int64_t", "32", "Columns of a panel">,
    Option<"fewestRows", "fewest-rows", "int64_t", "32", "Fewer rows are not worth it">,
    Option<"sets", "sets", "int64_t", "1024", "Of the cache that holds a panel">,
    Option<"ways", "ways", "int64_t", "8", "Lines of a set">];
}

def PadTerms : Pass<"pad-terms", "mlir::func::FuncOp"> {
  let summary = "Short odd runs of a contraction's terms get zeros at their end";
  let description = [{
    Where the terms of a contraction come in runs of a few elements, as the three
    channels of an image do, and their number is no power of two, both operands are
    padded to the next one, so that a run is one access to memory. The stationary
    operand is padded by @prepare, the other one by the kernel that writes it. For GPU
    targets.
  }];
  let options = [
    Option<"longest", "longest", "int64_t", "8", "Runs of this many elements are long enough">];
}

def SplitPrepare : Pass<"split-prepare", "mlir::ModuleOp"> {
  let summary = "Moves what depends on weights alone to @prepare";
  let description = [{
    Values that depend on weights and constants alone are computed by @prepare when
    the model is built, and @main reads the results as weights. What would be much
    larger than the weights it is made of (broadcasts, generated tensors) stays,
    and so do views that their readers can as well compose, and narrow weights that a
    product of at most `widened-rows` rows widens by itself.
  }];
  let options = [Option<"widenedRows", "widened-rows", "int64_t", "std::numeric_limits<int64_t>::max()",
                        "Rows up to which a product widens its weights by itself">];
}

def OutlineConstants : Pass<"outline-constants", "mlir::ModuleOp"> {
  let summary = "Constants of more than one value become weights";
  let description = [{
    Before: any `graph.constant`. After: splat constants only. Runs before
    form-kernels, whose kernels hold splats as immediates and read all else from
    memory.
  }];
}

def SplitConcats : Pass<"split-concats", "mlir::func::FuncOp"> {
  let summary = "A concatenation of many operands becomes a tree";
  let description = [{
    A kernel that concatenates asks of each element which operand it is from, so its
    code and its work grow with the number of operands; with its square where their
    sizes are symbolic, as each place is then computed from all sizes in front of it.
    After: no `graph.concat` has more than `most` operands, or a quarter of it where
    sizes along the axis are symbolic. Runs right before kernels are formed: nothing else profits
    from the tree.
  }];
  let options = [Option<"most", "most", "uint64_t", "32", "Operands of a concatenation">];
}

def BeginSums : Pass<"begin-sums", "mlir::func::FuncOp"> {
  let summary = "Sums over images begin where these are computed";
  let description = [{
    For GPUs. Before: a sum over all pixels of an image that a depthwise convolution, and what
    follows it element by element, gives to others as well (the mean of squeeze-excite). After:
    sums of cells of the image (a `pool` without overlap), each of which is a tile of the kernel
    that computes the image and stores them beside it, and the sum of those few.
  }];
  let options = [
    Option<"instances", "instances", "int64_t", "132",
           "Program instances that occupy all of the device: its multiprocessors">
  ];
}

def SplitReductions : Pass<"split-reductions", "mlir::func::FuncOp"> {
  let summary = "Long reductions in steps, normalizations of scattered rows written out";
  let description = [{
    A row that is neither a run of memory nor one of many side by side (a group of
    channels in an image with channels last) cannot be walked together with others, and a
    few long rows leave a machine idle. Before: `reduce`, `normalize` of such rows. After:
    partial results along some dimensions, then the rest; a normalization is its statistics and
    an elementwise expression, which form-kernels fuses with what follows. Rows of
    other forms are left to one kernel that holds them.
  }];
  let options = [
    Option<"cutOpenRuns", "cut-open-runs", "bool", "false",
           "Sums along runs of an open length, and the greatest or least of all elements of an "
           "open number, are taken of parts of a length that is known">
  ];
}

def StageOrdered : Pass<"stage-ordered", "mlir::func::FuncOp"> {
  let summary = "Ordered operators in steps that many program instances share";
  let description = [{
    For GPUs, right before kernels are formed. Before: `scatter_nd` of many updates and `scatter_elements`,
    `scan` and `sort` of few, long rows, each of which one program instance would walk. After: scatters
    update a copy of their input in place, whose elements are of 32 bits at least where
    updates meet them; rows are scanned, or sorted, in parts first. Each operator says by itself how
    (`writeInSteps`).
  }];
  let options = [
    Option<"instances", "instances", "int64_t", "132",
           "Program instances that occupy all of the device: its multiprocessors">
  ];
}

def FormKernels : Pass<"form-kernels", "mlir::func::FuncOp"> {
  let summary = "Partitions a function into graph.kernel regions";
  let description = [{
    After: weights, kernels in an order of execution, same-bytes views (aliases)
    and the return are all that is left at the top level. See
    graph/analysis/FusionPlan.h for what one kernel holds.
  }];
  let options = [
    Option<"denseRows", "dense-rows", "bool", "false",
           "Store what products and gathers would read across their vectors, tile after tile">,
    Option<"widenedRows", "widened-rows", "int64_t", "0",
           "Rows up to which a product widens its weights by itself">,
    Option<"instances", "instances", "int64_t", "0",
           "Multiprocessors of a GPU, whose program instances compute small sums again; 0: none does">
  ];
}

def VerifyKernels : Pass<"verify-kernels", "mlir::ModuleOp"> {
  let summary = "Checks the form that form-kernels promises";
}

#endif
