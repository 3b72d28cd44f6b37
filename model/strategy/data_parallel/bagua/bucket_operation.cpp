#include "model/strategy/data_parallel/bagua/bucket_operation.hpp"

#include <vector>

#include "model/network/arithmetic/min_max_uint8.hpp"
#include "model/strategy/data_parallel/bagua/bagua_sites.hpp"
#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

using namespace bagua_sites;

Ticket AverageOfBucket::run(Rank& rank, const Slice& flat, Ticket ready) {
  Ticket done = groups_->reduce_to_leader(rank, flat, average_, ready);
  if (groups_->takes_part() && groups_->ranks() > 1) {
    done = rank.all_reduce(groups_->group(), flat, average_ ? Reduction::avg : Reduction::sum,
                           {communication_stream, {done}, site_id(average_bucket)});
  }
  return groups_->send_from_leader(rank, flat, done);
}

Ticket compress(Rank& rank, const Slice& numbers, const Slice& bytes, int64_t chunks,
                const Slice& error, Ticket ready) {
  const auto scalar = static_cast<double>(chunks);
  std::vector<Slice> writes{bytes};
  if (error.buffer != no_buffer) {
    writes.push_back(error);
  }
  KernelCall call;
  call.kernel = Kernel::compress;
  call.reads = {&numbers, 1};
  call.writes = writes;
  call.scalars = {&scalar, 1};
  // Smallest and largest are two reductions before the bytes are made.
  call.memory_traffic = numbers.bytes() * 3 + bytes.bytes();
  return rank.compute(call, {communication_stream, {ready}, site_id(compress_chunks)});
}

Ticket decompress(Rank& rank, const Slice& bytes, const Slice& numbers, int64_t chunks,
                  SiteId site) {
  return elementwise(rank, Kernel::decompress, {bytes}, {numbers}, static_cast<double>(chunks),
                     {communication_stream, {}, site});
}

Ticket CompressedAverageOfBucket::run(Rank& rank, const Slice& flat, Ticket ready) {
  Ticket done = groups_->reduce_to_leader(rank, flat, average_, ready);
  if (groups_->takes_part()) {
    done = among_members(rank, flat, done);
  }
  return groups_->send_from_leader(rank, flat, done);
}

Ticket CompressedAverageOfBucket::among_members(Rank& rank, const Slice& flat, Ticket ready) {
  const int32_t ranks = groups_->ranks();
  const int64_t elements = flat.elements / ranks;
  const auto bytes_for = [&](int64_t numbers, int64_t chunks) {
    return rank.allocate(Purpose::communication, DType::uint8, compressed_bytes(numbers, chunks),
                         DeviceId{0}, queue::communication);
  };
  const Slice sent = bytes_for(flat.elements, ranks);
  const Slice got = bytes_for(flat.elements, ranks);
  Ticket done = compress(rank, flat, sent, ranks, error_, ready);
  if (ranks > 1) {
    rank.all_to_all(groups_->group(), sent, got, {},
                    {communication_stream, {done}, site_id(exchange_chunks)});
  }
  // Now the bucket holds what all ranks have of the own chunk, in the order of the ranks.
  decompress(rank, ranks > 1 ? got : sent, flat, ranks, site_id(exchange_chunks));
  const Slice first = flat.part(0, elements);
  const Slice own = flat.part(groups_->index() * elements, elements);
  const std::vector<Slice> sums(static_cast<size_t>(ranks - 1), first);
  std::vector<Slice> others;
  for (int32_t other = 1; other < ranks; ++other) {
    others.push_back(flat.part(other * elements, elements));
  }
  const ComputeOptions on_stream{communication_stream, {}, site_id(average_chunk)};
  if (!others.empty()) {
    const double none = 0;
    KernelCall call;
    call.kernel = Kernel::add;
    call.reads = others;
    call.writes = sums;
    call.scalars = {&none, 1};
    call.memory_traffic = flat.bytes() + first.bytes();
    rank.compute(call, on_stream);
  }
  done = elementwise(rank, Kernel::scale, {first}, {own}, average_ ? 1.0 / ranks : 1.0, on_stream);
  const Slice mean = bytes_for(elements, 1);
  done = compress(rank, own, mean, 1, error_, done);
  if (ranks > 1) {
    rank.all_gather(groups_->group(), mean, got,
                    {communication_stream, {done}, site_id(gather_chunks)});
  }
  done = decompress(rank, ranks > 1 ? got : mean, flat, ranks, site_id(gather_chunks));
  for (const Slice& bytes : {sent, got, mean}) {
    rank.release(bytes);
  }
  return done;
}

Bytes CompressedAverageOfBucket::bytes_of(const Slice& flat) const {
  const int32_t ranks = groups_->ranks();
  if (!groups_->takes_part() || ranks == 1) {
    return flat.bytes();
  }
  return Bytes(compressed_bytes(flat.elements, ranks) + compressed_bytes(flat.elements / ranks, 1));
}

}  // namespace lockstep
