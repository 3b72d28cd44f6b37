#include "model/strategy/local_model/sample_comparison.hpp"

#include <utility>
#include <vector>

#include "model/network/contrastive_part.hpp"
#include "model/strategy/local_model/replica_sites.hpp"

namespace lockstep {

namespace {

using Call = SampleComparison::Call;

/// Elements for each pair of a sample with one that it is compared with.
struct ElementsOfPair {
  int64_t products = 0;  ///< matrices of scores
  int64_t moved_in_a_pass = 0;
  int64_t kept = 0;            ///< by autograd, of the type of the views
  int64_t masks = 0;           ///< by autograd, bytes
  int64_t living_forward = 0;  ///< local tensors beside what autograd keeps
  int64_t living_backward = 0;
};

// Counted from the code of each.
ElementsOfPair elements_of_pair(LayerKind loss) {
  switch (loss) {
    // A product, divided, and its log-softmax.
    case LayerKind::info_nce_loss: return {1, 5, 1, 0, 2, 2};
    case LayerKind::clip_loss: return {2, 10, 2, 0, 4, 4};
    // A product, scaled, with a bias, times the signs; the logarithm of its sigmoid.
    case LayerKind::sig_lip_loss: return {1, 11, 2, 0, 4, 2};
    // One product of all views: divided, less its maximum; two masks and their product; the
    // exponential without the diagonal, its sums' logarithm, and the mean of what is right.
    case LayerKind::sup_con_loss: return {4, 96, 12, 0, 24, 12};
    // lightly 1.6: four products, each divided; two without their diagonals; three concatenations;
    // a log-softmax.
    default: return {4, 40, 4, 2, 12, 8};
  }
}

/// As lightly's dist.world_size(): one where torch.distributed is not initialised.
int32_t ranks_compared(const Rank& rank, const Call& call) {
  return std::get<LossArguments>(call.loss->arguments).gathers_samples ? rank.world_size() : 1;
}

/// Among all samples.
double first_sample(const Rank& rank, const Call& call, int32_t ranks) {
  return ranks > 1 ? static_cast<double>(call.samples * rank.id()) : 0;
}

Bytes of_pairs(const Call& call, int32_t ranks, DType dtype) {
  return Bytes(size_of(dtype)) * call.samples * call.samples * ranks;
}

KernelCall kernel_of(const Call& call, Pass pass) {
  KernelCall kernel;
  kernel.layer = call.module;
  kernel.kernel = pass == Pass::forward ? Kernel::loss_forward : Kernel::loss_backward;
  return kernel;
}

KernelCall of_views(const Call& call, Pass pass) {
  KernelCall kernel = kernel_of(call, pass);
  kernel.memory_traffic = moved_bytes(*call.loss, pass, call.samples, call.plan->activation_dtype);
  return kernel;
}

KernelCall of_comparison(const Call& call, Pass pass, int32_t ranks) {
  KernelCall kernel = kernel_of(call, pass);
  const int64_t turns = pass == Pass::forward ? 1 : 2;  // the gradients of both factors
  const ElementsOfPair elements = elements_of_pair(call.loss->kind);
  kernel.work =
      turns * elements.products * 2 * call.samples * call.samples * ranks * call.loss->input.back();
  kernel.computes_in = call.plan->activation_dtype;
  kernel.memory_traffic =
      of_pairs(call, ranks, call.plan->activation_dtype) * elements.moved_in_a_pass;
  return kernel;
}

/// What the kernel of the comparison reads.
std::vector<Slice> compared_by_kernel(const Call& call, const std::array<Slice, 4>& views) {
  std::vector<Slice> reads(views.begin(), views.end());
  if (call.loss->kind == LayerKind::sup_con_loss) {
    reads.push_back(call.targets);
  }
  return reads;
}

/// Memory that is only counted: where values are computed it holds nothing.
Slice counted(Rank& rank, const Call& call, Purpose purpose, Bytes bytes) {
  return call.plan->numerics || bytes == Bytes{}
             ? Slice{}
             : rank.allocate(purpose, DType::uint8, bytes.count(), call.device);
}

void release(Rank& rank, Slice& memory) {
  if (memory.buffer != no_buffer) {
    rank.release(std::exchange(memory, Slice{}));
  }
}

/// torch.distributed.all_gather: the stream of the process group waits for that of the device,
/// which waits for it.
void gather(Rank& rank, const Call& call, const Slice& own, const Slice& all) {
  const SiteId site = site_id(replica_sites::gather_views);
  const Ticket ready = rank.event({call.on, {}, site});
  const Ticket gathered =
      rank.all_gather(world_group, own, all, {communication_stream, {ready}, site});
  rank.event({call.on, {gathered}, site});
}

}  // namespace

void SampleComparison::forget(Rank& rank) {
  for (Slice& views : views_) {
    release(rank, views);
  }
  release(rank, kept_);
}

// Of each sample, and where they are gathered of all ranks' samples.
void SampleComparison::make_views(Rank& rank, const Call& call, int32_t ranks) {
  forget(rank);
  const int64_t elements = call.output.elements / 2;
  const DType dtype = call.output.dtype == DType::fp64 ? DType::fp64 : DType::fp32;
  auto& [first, second, first_of_all, second_of_all] = views_;
  first = rank.allocate(Purpose::activation, dtype, elements, call.device);
  second = rank.allocate(Purpose::activation, dtype, elements, call.device);
  const double scalars[] = {static_cast<double>(ContrastivePart::views)};
  const Slice own[] = {first, second};
  KernelCall kernel = of_views(call, Pass::forward);
  kernel.scalars = scalars;
  kernel.writes = own;
  if (call.plan->numerics) {
    kernel.reads = {&call.output, 1};
  }
  rank.compute(kernel, {call.on, {}, site_id(replica_sites::loss_forward)});
  if (ranks > 1) {
    first_of_all = rank.allocate(Purpose::activation, dtype, elements * ranks, call.device);
    gather(rank, call, first, first_of_all);
    second_of_all = rank.allocate(Purpose::activation, dtype, elements * ranks, call.device);
    gather(rank, call, second, second_of_all);
  }
}

/// Own views, and those that they are compared with.
std::array<Slice, 4> SampleComparison::views_to_compare(int32_t ranks) const {
  const auto& [first, second, first_of_all, second_of_all] = views_;
  return {first, second, ranks > 1 ? first_of_all : first, ranks > 1 ? second_of_all : second};
}

Ticket SampleComparison::forward(Rank& rank, const Call& call, bool training, const Slice& loss) {
  const int32_t ranks = ranks_compared(rank, call);
  make_views(rank, call, ranks);
  const std::array<Slice, 4> reads = views_to_compare(ranks);
  const Bytes pairs = of_pairs(call, ranks, reads[0].dtype);
  const ElementsOfPair elements = elements_of_pair(call.loss->kind);
  if (training && call.has_gradient) {  // the log-softmax, and what is no diagonal
    kept_ = counted(rank, call, Purpose::activation,
                    pairs * elements.kept + of_pairs(call, ranks, DType::uint8) * elements.masks);
  }
  Slice living = counted(rank, call, Purpose::workspace, pairs * elements.living_forward);
  const double scalars[] = {static_cast<double>(ContrastivePart::comparison),
                            first_sample(rank, call, ranks)};
  KernelCall kernel = of_comparison(call, Pass::forward, ranks);
  kernel.scalars = scalars;
  kernel.writes = {&loss, 1};
  const std::vector<Slice> with_labels = compared_by_kernel(call, reads);
  if (call.plan->numerics) {
    kernel.reads = with_labels;
  }
  const Ticket done = rank.compute(kernel, {call.on, {}, site_id(replica_sites::loss_forward)});
  release(rank, living);
  return done;
}

// The gather's backward adds up what all ranks say of the views of all (lightly/utils/dist.py,
// GatherLayer). Autograd comes to the second gather first.
Ticket SampleComparison::reduce_gradients(Rank& rank, const Call& call, std::array<Slice, 2> shared,
                                          Ticket done) {
  const SiteId site = site_id(replica_sites::reduce_views);
  for (const Slice& gradients : shared) {
    const Ticket reduced = rank.all_reduce(world_group, gradients, Reduction::sum,
                                           {communication_stream, {done}, site});
    done = rank.event({call.on, {reduced}, site});
  }
  return done;
}

Ticket SampleComparison::backward(Rank& rank, const Call& call, const Back& back) {
  const int32_t ranks = ranks_compared(rank, call);
  const std::array<Slice, 4> reads = views_to_compare(ranks);
  const auto made = [&](int64_t elements) {
    return rank.allocate(Purpose::workspace, reads[0].dtype, elements, call.device);
  };
  const int64_t own = reads[0].elements;
  const Slice gradients[] = {made(own), made(own), made(own * ranks), made(own * ranks)};
  const SiteId site = site_id(replica_sites::loss_backward);
  const double of_pair[] = {back.factor, static_cast<double>(ContrastivePart::comparison),
                            first_sample(rank, call, ranks)};
  KernelCall comparison = of_comparison(call, Pass::input_gradient, ranks);
  comparison.scalars = of_pair;
  comparison.writes = gradients;
  const int64_t begin = ranks > 1 ? own * rank.id() : 0;
  const Slice of_view[] = {call.output, gradients[0], gradients[1], gradients[2].part(begin, own),
                           gradients[3].part(begin, own)};
  const double scalars[] = {back.factor, static_cast<double>(ContrastivePart::views)};
  KernelCall views = of_views(call, Pass::input_gradient);
  views.scalars = scalars;
  const std::vector<Slice> with_labels = compared_by_kernel(call, reads);
  if (call.plan->numerics) {
    comparison.reads = with_labels;
    views.reads = of_view;
    views.writes = {&back.gradient, 1};
  }
  Slice living = counted(
      rank, call, Purpose::workspace,
      of_pairs(call, ranks, reads[0].dtype) * elements_of_pair(call.loss->kind).living_backward);
  Ticket done = rank.compute(comparison, {call.on, back.after, site});
  release(rank, living);
  release(rank, kept_);
  if (ranks > 1) {
    done = reduce_gradients(rank, call, {gradients[3], gradients[2]}, done);
  }
  done = rank.compute(views, {call.on, {}, site});
  for (const Slice& gradient : gradients) {
    rank.release(gradient);
  }
  return done;
}

}  // namespace lockstep
