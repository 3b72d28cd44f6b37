#include "model/strategy/exchange/hooks/power_sgd.hpp"

#include <algorithm>

#include "model/core/random.hpp"
#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/exchange/hooks/hook_sites.hpp"
#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

using namespace hook_sites;

namespace {

/// Host threads that a run may start; behind that many, what follows is submitted at once.
constexpr int64_t most_threads = 1000;

struct Product {
  Slice left;
  Slice right;
  Slice result;
  int64_t rows = 0;
  int64_t inner = 0;
  int64_t columns = 0;
  bool transposes_left = false;
  bool transposes_right = false;
};

Ticket multiply(Rank& rank, const Product& product, const ComputeOptions& options) {
  const Slice reads[] = {product.left, product.right};
  const double scalars[] = {static_cast<double>(product.rows), static_cast<double>(product.inner),
                            static_cast<double>(product.columns),
                            product.transposes_left ? 1.0 : 0.0,
                            product.transposes_right ? 1.0 : 0.0};
  KernelCall call;
  call.kernel = Kernel::matrix_product;
  call.work = 2 * product.left.elements * product.columns;
  call.memory_traffic = product.left.bytes() + product.right.bytes() + product.result.bytes();
  call.reads = reads;
  call.writes = {&product.result, 1};
  call.scalars = scalars;
  return rank.compute(call, options);
}

Ticket orthogonalize(Rank& rank, const Slice& matrix, int64_t rows, int64_t columns, double epsilon,
                     const ComputeOptions& options) {
  const double scalars[] = {static_cast<double>(rows), static_cast<double>(columns), epsilon};
  KernelCall call;
  call.kernel = Kernel::orthogonalize;
  call.work = 2 * matrix.elements * columns;
  call.memory_traffic = matrix.bytes() * 2;
  call.writes = {&matrix, 1};
  call.scalars = scalars;
  return rank.compute(call, options);
}

// Close to a normal distribution, by additions alone: the same bits on every machine.
Values drawn(uint64_t key, DType dtype, int64_t elements) {
  constexpr uint64_t terms = 12;
  Values values(dtype, elements);
  for (int64_t i = 0; i < elements; ++i) {
    double sum = -6;
    for (uint64_t term = 0; term < terms; ++term) {
      sum += random_unit(key, static_cast<uint64_t>(i) * terms + term);
    }
    values.set(i, sum);
  }
  return values;
}

}  // namespace

int64_t compressed_rank(const PowerSgdOptions& options, int64_t rows, int64_t columns) {
  const int64_t rank = std::min({rows, columns, options.rank});
  const auto compressed = static_cast<double>((rows + columns) * rank);
  return compressed * options.min_compression_rate < static_cast<double>(rows * columns) ? rank : 0;
}

Ticket PowerSgdHook::start(Rank& rank, const FullBucket& bucket) {
  if (iteration_ < options_.start_iteration) {
    iteration_ += bucket.is_last ? 1 : 0;
    const Ticket divided = elementwise(rank, Kernel::scale, {}, {bucket.flat},
                                       1.0 / rank.world_size(), {bucket.filled}, site_id(prepare));
    return all_reduce(rank, world_group, bucket.flat, divided, site_id(reduce_gradients));
  }
  iteration_ += bucket.is_last ? 1 : 0;
  if (options_.is_batched && options_.takes_batches_alone) {
    throw ProgramException(site_id(compress),
                           "AssertionError: batched_powerSGD_hook gives _orthogonalize a matrix, "
                           "which takes batches of matrices alone; use powerSGD_hook");
  }
  Exchange& exchange = *exchanges_.emplace_back(std::make_unique<Exchange>());
  exchange.bucket = bucket;
  Kept& kept = kept_[bucket.index];
  if (options_.is_batched) {
    exchange.bucket.filled = square(rank, exchange);
  }
  const Ticket input = add_error(rank, exchange, kept);
  if (!options_.is_batched) {
    divide(rank, exchange);
  }
  hold_low_rank(rank, exchange, kept);
  const Ticket first = options_.is_batched
                           ? reduce_ps(rank, exchange, multiply_ps(rank, exchange, input))
                           : reduce_whole(rank, exchange, input);
  const bool in_thread =
      options_.calls_back_in_threads && !bucket.is_alone && threads_ < most_threads;
  if (!in_thread) {
    const Ticket ps = options_.is_batched ? first : reduce_ps(rank, exchange, first);
    return decompress(rank, exchange, reduce_qs(rank, exchange, ps));
  }
  ++threads_;
  const Ticket promise = promises_.emplace_back(rank.promise());
  rank.start_lane(call_back(rank, exchange, first, promise));
  return promise;
}

// The bucket in a square of its own, which is what is compressed; the rest of it are zeros.
Ticket PowerSgdHook::square(Rank& rank, Exchange& exchange) const {
  const Slice bucket = exchange.bucket.flat;
  int64_t side = 1;
  while (side * side < bucket.elements) {
    ++side;
  }
  const Slice square = rank.allocate(Purpose::communication, bucket.dtype, side * side, DeviceId{0},
                                     queue::communication);
  const SiteId site = site_id(compress);
  if (square.elements > bucket.elements) {
    elementwise(rank, Kernel::fill, {},
                {square.part(bucket.elements, square.elements - bucket.elements)}, 0, {}, site);
  }
  exchange.matrices.push_back(
      {square, {bucket}, side, side, std::min(options_.rank, side), {}, {}});
  const Ticket filled = copy_each(rank, {bucket}, {square.part(0, bucket.elements)},
                                  {compute_stream, {exchange.bucket.filled}, site});
  exchange.bucket.flat = square;
  return filled;
}

// The gradient that is compressed is that of this iteration and what the last one lost.
Ticket PowerSgdHook::add_error(Rank& rank, Exchange& exchange, Kept& kept) {
  const Slice& flat = exchange.bucket.flat;
  const Ticket filled = exchange.bucket.filled;
  if (!options_.use_error_feedback) {
    return filled;
  }
  const SiteId site = site_id(compress);
  if (kept.error.buffer == no_buffer) {
    kept.error = rank.allocate(Purpose::communication, flat.dtype, flat.elements);
  } else if (kept.error.elements != flat.elements) {
    throw ProgramException(site,
                           "the size of a bucket is not that of its error of before: buckets have "
                           "changed since PowerSGD began, as they do at the begin of each fit");
  } else {
    elementwise(rank, Kernel::add, {kept.error}, {flat}, 0, {filled}, site);
  }
  exchange.input = rank.allocate(Purpose::communication, flat.dtype, flat.elements, DeviceId{0},
                                 queue::communication);
  return copy_each(rank, {flat}, {exchange.input}, {compute_stream, {filled}, site});
}

// Matrices of one shape lie together, in the order in which the shapes first come.
void PowerSgdHook::divide(Rank& rank, Exchange& exchange) const {
  const FullBucket& bucket = exchange.bucket;
  std::vector<std::pair<int64_t, int64_t>> shapes;
  std::vector<std::vector<Matrix>> by_shape;
  for (size_t part = 0; part < bucket.parts.size(); ++part) {
    const Slice& gradient = bucket.parts[part];
    const int64_t rows = bucket.rows[part];
    const int64_t columns = gradient.elements / rows;
    const int64_t kept_columns = compressed_rank(options_, rows, columns);
    if (kept_columns == 0) {
      exchange.whole.push_back(gradient);
      continue;
    }
    const std::pair shape{rows, columns};
    const auto at = static_cast<size_t>(std::ranges::find(shapes, shape) - shapes.begin());
    if (at == shapes.size()) {
      shapes.push_back(shape);
      by_shape.emplace_back();
    }
    by_shape[at].push_back({gradient, {}, rows, columns, kept_columns, {}, {}});
  }
  for (const std::vector<Matrix>& alike : by_shape) {
    if (options_.batches_alike && alike.size() > 1) {
      exchange.matrices.push_back(stack(rank, alike));
    } else {
      exchange.matrices.insert(exchange.matrices.end(), alike.begin(), alike.end());
    }
  }
}

PowerSgdHook::Matrix PowerSgdHook::stack(Rank& rank, const std::vector<Matrix>& alike) {
  Matrix all = alike.front();
  for (const Matrix& matrix : alike) {
    all.stacked.push_back(matrix.gradient);
  }
  all.gradient = rank.allocate(Purpose::communication, all.gradient.dtype,
                               total_elements(all.stacked), DeviceId{0}, queue::communication);
  copy_each(rank, all.stacked, parts_of(all.gradient, all.stacked),
            {compute_stream, {}, site_id(compress)});
  return all;
}

// P and Q of the iteration before where the start is warm; Q is random else, and the same on all
// ranks.
void PowerSgdHook::hold_low_rank(Rank& rank, Exchange& exchange, Kept& kept) {
  const DType dtype = exchange.bucket.flat.dtype;
  int64_t in_ps = 0;
  int64_t in_qs = 0;
  for (const Matrix& matrix : exchange.matrices) {
    in_ps += matrix.rows * matrix.rank * matrix.count();
    in_qs += matrix.columns * matrix.rank * matrix.count();
  }
  const bool is_new = !options_.warm_start || !kept.has_low_rank;
  if (is_new) {
    const auto hold = [&](int64_t elements) {
      return rank.allocate(Purpose::communication, dtype, elements, DeviceId{0},
                           queue::communication);
    };
    kept.ps = hold(in_ps);
    kept.qs = hold(in_qs);
    kept.has_low_rank = true;
  }
  exchange.ps = kept.ps;
  exchange.qs = kept.qs;
  int64_t p = 0;
  int64_t q = 0;
  for (Matrix& matrix : exchange.matrices) {
    matrix.p = kept.ps.part(p, matrix.rows * matrix.rank * matrix.count());
    matrix.q = kept.qs.part(q, matrix.columns * matrix.rank * matrix.count());
    p += matrix.p.elements;
    q += matrix.q.elements;
  }
  if (is_new) {
    draw(rank, exchange);
  }
  for (const Matrix& matrix : exchange.matrices) {
    orthogonalize(rank, matrix.q, matrix.columns, matrix.rank, options_.orthogonalization_epsilon,
                  {compute_stream, {}, site_id(compress)});
  }
}

void PowerSgdHook::draw(Rank& rank, const Exchange& exchange) {
  const uint64_t key = random_key(random_key(options_.random_seed, 0x706f776572), draws_++);
  uint64_t drawn_before = 0;
  for (const Matrix& matrix : exchange.matrices) {
    const int64_t elements = matrix.q.elements / matrix.count();
    for (int64_t i = 0; options_.writes_values && i < matrix.count(); ++i) {
      rank.write(matrix.q.part(i * elements, elements),
                 drawn(random_key(key, drawn_before++), matrix.q.dtype, elements));
    }
  }
}

Ticket PowerSgdHook::multiply_ps(Rank& rank, const Exchange& exchange, Ticket after) {
  Ticket ready = after;
  for (const Matrix& matrix : exchange.matrices) {
    ready = multiply(rank,
                     {matrix.gradient, matrix.q, matrix.p, matrix.rows, matrix.columns, matrix.rank,
                      false, false},
                     {compute_stream, {after}, site_id(compress)});
  }
  return ready;
}

Ticket PowerSgdHook::reduce_whole(Rank& rank, Exchange& exchange, Ticket after) {
  const SiteId site = site_id(compress);
  exchange.whole_flat =
      rank.allocate(Purpose::communication, exchange.bucket.flat.dtype,
                    total_elements(exchange.whole), DeviceId{0}, queue::communication);
  Ticket ready = after;
  if (!exchange.whole.empty()) {
    ready = copy_each(rank, exchange.whole, parts_of(exchange.whole_flat, exchange.whole),
                      {compute_stream, {after}, site});
  }
  if (!exchange.matrices.empty()) {
    ready = multiply_ps(rank, exchange, after);
  }
  return all_reduce(rank, world_group, exchange.whole_flat, ready, site_id(reduce_rest));
}

Ticket PowerSgdHook::reduce_ps(Rank& rank, const Exchange& exchange, Ticket after) {
  Ticket ready = after;
  if (!exchange.whole.empty()) {
    elementwise(rank, Kernel::scale, {}, {exchange.whole_flat}, 1.0 / rank.world_size(),
                {communication_stream, {after}, site_id(unpack)});
    ready = copy_each(rank, parts_of(exchange.whole_flat, exchange.whole), exchange.whole,
                      {communication_stream, {after}, site_id(unpack)});
  }
  // Not divided: they are made orthonormal.
  return all_reduce(rank, world_group, exchange.ps, ready, site_id(hook_sites::reduce_ps));
}

Ticket PowerSgdHook::reduce_qs(Rank& rank, const Exchange& exchange, Ticket after) {
  const ComputeOptions options{communication_stream, {after}, site_id(compress)};
  Ticket ready = after;
  for (const Matrix& matrix : exchange.matrices) {
    orthogonalize(rank, matrix.p, matrix.rows, matrix.rank, options_.orthogonalization_epsilon,
                  options);
  }
  for (const Matrix& matrix : exchange.matrices) {
    ready = multiply(rank,
                     {matrix.gradient, matrix.p, matrix.q, matrix.columns, matrix.rows, matrix.rank,
                      true, false},
                     options);
  }
  return all_reduce(rank, world_group, exchange.qs, ready, site_id(hook_sites::reduce_qs));
}

Ticket PowerSgdHook::decompress(Rank& rank, const Exchange& exchange, Ticket after) {
  const ComputeOptions options{communication_stream, {after}, site_id(unpack)};
  Ticket done = after;
  if (!exchange.matrices.empty()) {
    elementwise(rank, Kernel::scale, {}, {exchange.qs}, 1.0 / rank.world_size(), options);
  }
  for (const Matrix& matrix : exchange.matrices) {
    done = multiply(rank,
                    {matrix.p, matrix.q, matrix.gradient, matrix.rows, matrix.rank, matrix.columns,
                     false, true},
                    options);
    if (!matrix.stacked.empty()) {
      done = copy_each(rank, parts_of(matrix.gradient, matrix.stacked), matrix.stacked, options);
    }
  }
  if (options_.use_error_feedback) {  // the input less what has become of it
    const Slice& error = kept_[exchange.bucket.index].error;
    elementwise(rank, Kernel::scale, {exchange.bucket.flat}, {error}, -1, options);
    done = elementwise(rank, Kernel::add, {exchange.input}, {error}, 0, options);
  }
  return done;
}

// Nothing orders these calls with those of the main thread and of other buckets.
Program PowerSgdHook::call_back(Rank& rank, const Exchange& exchange, Ticket first,
                                Ticket promise) {
  co_await rank.settle(first);
  Ticket ps = first;
  if (!options_.is_batched) {
    ps = reduce_ps(rank, exchange, first);
    co_await rank.settle(ps);
  }
  const Ticket qs = reduce_qs(rank, exchange, ps);
  co_await rank.settle(qs);
  const Ticket done = decompress(rank, exchange, qs);
  co_await rank.settle(done);
  rank.fulfil(promise);
}

// torch's backward waits for all futures.
Program PowerSgdHook::finish(Rank& rank) {
  co_await rank.settle_all(promises_);
  promises_.clear();
  for (const std::unique_ptr<Exchange>& exchange : exchanges_) {
    if (exchange->whole_flat.buffer != no_buffer) {
      rank.release(exchange->whole_flat);
    }
    for (const Matrix& matrix : exchange->matrices) {
      if (!matrix.stacked.empty()) {
        rank.release(matrix.gradient);
      }
    }
    if (exchange->input.buffer != no_buffer) {
      rank.release(exchange->input);
    }
    if (!options_.warm_start) {
      rank.release(exchange->ps);
      rank.release(exchange->qs);
    }
  }
  exchanges_.clear();
}

}  // namespace lockstep
