#include "model/strategy/local_model/layer_exchange.hpp"

#include <utility>

#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/local_model/tensor_sites.hpp"

namespace lockstep {

/// An activation or a gradient on its way. Its whole is [outer, ranks, inner]: each rank's part is
/// one of the second dimension.
struct LayerExchange::Tensor {
  Slice from;  ///< with numerics alone, as `to`
  Slice to;
  DType dtype = DType::fp32;
  int64_t outer = 1;
  int64_t inner = 1;
  int64_t elements = 1;  ///< of the whole

  int64_t part_elements() const { return outer * inner; }
};

namespace {

/// What carries no values travels in memory that is there for that long.
class TravellingBuffer {
 public:
  TravellingBuffer(Rank& rank, const Slice& carried, DType dtype, int64_t elements)
      : rank_(rank), is_own_(carried.buffer == no_buffer) {
    slice_ = is_own_ ? rank.allocate(Purpose::communication, dtype, elements) : carried;
  }
  TravellingBuffer(const TravellingBuffer&) = delete;
  TravellingBuffer& operator=(const TravellingBuffer&) = delete;
  ~TravellingBuffer() {
    if (is_own_) {
      rank_.release(slice_);
    }
  }
  const Slice& slice() const { return slice_; }

 private:
  Rank& rank_;
  bool is_own_;
  Slice slice_;
};

Ticket swap(Rank& rank, const Slice& from, const Slice& to, int64_t rows, int64_t columns,
            const ComputeOptions& options) {
  const double scalars[] = {static_cast<double>(rows), static_cast<double>(columns)};
  KernelCall call;
  call.kernel = Kernel::swap_outer;
  call.reads = {&from, 1};
  call.writes = {&to, 1};
  call.scalars = scalars;
  call.memory_traffic = from.bytes() + to.bytes();
  return rank.compute(call, options);
}

}  // namespace

// DTensor leaves its input as it was; the sum is another tensor.
Ticket LayerExchange::sum_over_ranks(Rank& rank, const Tensor& tensor, SiteId site) {
  const TravellingBuffer sum(rank, tensor.to, tensor.dtype, tensor.elements);
  if (tensor.from.buffer != no_buffer) {
    elementwise(rank, Kernel::copy, {tensor.from}, {sum.slice()}, 0, {compute(), {}, site});
  }
  const Ticket ready = rank.event({compute(), {}, site});
  const Ticket done =
      rank.all_reduce(ranks().group, sum.slice(), Reduction::sum, {ranks().on, {ready}, site});
  return rank.event({compute(), {done}, site});
}

// Parts arrive one behind the other; where they are columns they are put into their places.
Ticket LayerExchange::gather_parts(Rank& rank, const Tensor& tensor, SiteId site) {
  const int64_t count = ranks().ranks;
  const bool are_columns = tensor.outer > 1;
  const int64_t elements = tensor.part_elements() * count;
  const TravellingBuffer part(rank, tensor.from, tensor.dtype, tensor.part_elements());
  const TravellingBuffer gathered(rank, are_columns ? Slice{} : tensor.to, tensor.dtype, elements);
  const Ticket ready = rank.event({compute(), {}, site});
  const Ticket done =
      rank.all_gather(ranks().group, part.slice(), gathered.slice(), {ranks().on, {ready}, site});
  const Ticket there = rank.event({compute(), {done}, site});
  if (!are_columns) {
    return there;
  }
  const TravellingBuffer whole(rank, tensor.to, tensor.dtype, elements);
  return swap(rank, gathered.slice(), whole.slice(), count, tensor.outer, {compute(), {}, site});
}

Ticket LayerExchange::scatter_sums(Rank& rank, const Tensor& tensor, SiteId site) {
  const int64_t count = ranks().ranks;
  const int64_t elements = tensor.part_elements() * count;
  const bool are_columns = tensor.outer > 1;
  const TravellingBuffer whole(rank, tensor.from, tensor.dtype, elements);
  const TravellingBuffer sorted(rank, are_columns ? Slice{} : whole.slice(), tensor.dtype,
                                elements);
  if (are_columns) {
    swap(rank, whole.slice(), sorted.slice(), tensor.outer, count, {compute(), {}, site});
  }
  const TravellingBuffer part(rank, tensor.to, tensor.dtype, tensor.part_elements());
  const Ticket ready = rank.event({compute(), {}, site});
  const Ticket done = rank.reduce_scatter(ranks().group, sorted.slice(), part.slice(),
                                          Reduction::sum, {}, {ranks().on, {ready}, site});
  return rank.event({compute(), {done}, site});
}

// One kernel that copies the part; with values two, as no kernel copies a column alone.
Ticket LayerExchange::take_own_part(Rank& rank, const Tensor& tensor, SiteId site) {
  const int64_t part = tensor.part_elements();
  const int64_t begin = ranks().index * part;
  if (tensor.from.buffer == no_buffer) {
    const TravellingBuffer own(rank, {}, tensor.dtype, part);
    return moving(rank, {}, {own.slice(), own.slice()}, {compute(), {}, site});
  }
  if (tensor.outer == 1) {
    return elementwise(rank, Kernel::copy, {tensor.from.part(begin, part)}, {tensor.to}, 0,
                       {compute(), {}, site});
  }
  const TravellingBuffer sorted(rank, {}, tensor.dtype, part * ranks().ranks);
  swap(rank, tensor.from, sorted.slice(), tensor.outer, ranks().ranks, {compute(), {}, site});
  return elementwise(rank, Kernel::copy, {sorted.slice().part(begin, part)}, {tensor.to}, 0,
                     {compute(), {}, site});
}

// The terms of the other layers that read the same input: their sum has travelled already, and what
// is left for them is 0.
Ticket LayerExchange::travel_again(Rank& rank, const Tensor& tensor, SiteId site) {
  Tensor zeros = tensor;
  zeros.from = {};
  zeros.to = {};
  const TravellingBuffer term(rank, {}, tensor.dtype, tensor.elements);
  if (tensor.from.buffer != no_buffer) {
    elementwise(rank, Kernel::fill, {}, {term.slice()}, 0, {compute(), {}, site});
  }
  zeros.to = term.slice();
  return sum_over_ranks(rank, zeros, site);
}

Ticket LayerExchange::exchange(Rank& rank, TensorExchange how, const Tensor& tensor, SiteId site) {
  switch (how) {
    case TensorExchange::all_reduce: return sum_over_ranks(rank, tensor, site);
    case TensorExchange::all_gather: return gather_parts(rank, tensor, site);
    case TensorExchange::reduce_scatter: return scatter_sums(rank, tensor, site);
    case TensorExchange::split: return take_own_part(rank, tensor, site);
    case TensorExchange::none: break;
  }
  return tensor.from.buffer == no_buffer ? Ticket{}
                                         : elementwise(rank, Kernel::copy, {tensor.from},
                                                       {tensor.to}, 0, {compute(), {}, site});
}

namespace {

/// The whole of what an exchange is about, of a sample.
const Shape& whole_shape(const Layer& layer) {
  return elements_of(layer.input) >= elements_of(layer.output) ? layer.input : layer.output;
}

}  // namespace

LayerExchange::Tensor LayerExchange::exchanged(const Layer& layer,
                                               const ExchangeArguments& how) const {
  const Shape& whole = whole_shape(layer);
  Tensor tensor;
  tensor.outer = now_.samples;
  for (size_t i = 0; i < how.dimension; ++i) {
    tensor.outer *= whole[i];
  }
  tensor.elements = now_.samples * elements_of(whole);
  tensor.inner = tensor.elements / tensor.outer / how.ranks;
  return tensor;
}

DType LayerExchange::type_behind(size_t layer) const {
  return state_.division().exchanged_types.at(layer);
}

void LayerExchange::forward(Rank& rank, const LayerRun& run, const Slice& output) {
  const Layer& layer = layer_of(run);
  const auto& how = std::get<ExchangeArguments>(layer.arguments);
  Tensor tensor = exchanged(layer, how);
  tensor.from = plan().numerics ? run.input : Slice{};
  tensor.to = output;
  tensor.dtype = plan().numerics ? output.dtype : type_behind(run.layer);
  exchange(rank, how.forward, tensor, site_id(tensor_sites::forward));
}

Ticket LayerExchange::backward(Rank& rank, const LayerRun& run) {
  const Layer& layer = layer_of(run);
  const auto& how = std::get<ExchangeArguments>(layer.arguments);
  if (how.backward == TensorExchange::none || !now_.wants_input_gradient(run.layer)) {
    return {};
  }
  Tensor tensor = exchanged(layer, how);
  tensor.dtype = plan().numerics ? now_.gradient.dtype : type_behind(run.layer);
  if (plan().numerics) {
    tensor.from = now_.gradient;
    tensor.to = transient(rank, now_.samples * elements_of(layer.input), tensor.dtype);
    now_.gradient = tensor.to;
  }
  const SiteId site = site_id(tensor_sites::backward);
  Ticket done = exchange(rank, how.backward, tensor, site);
  for (int32_t again = 1; again < how.backward_times; ++again) {
    done = travel_again(rank, tensor, site);
  }
  return done;
}

}  // namespace lockstep
