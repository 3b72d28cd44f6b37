#include "model/user_program/registered_buffers.hpp"

#include <fmt/core.h>

#include "model/user_program/statement_failure.hpp"

namespace lockstep {

RegisteredBuffers::RegisteredBuffers(const StatementContext& context, const TensorStore& tensors,
                                     StreamOrder& streams)
    : rank_(context.rank),
      settings_(context.settings),
      log_(context.log),
      tensors_(tensors),
      streams_(streams) {}

// torch nn/modules/module.py, __setattr__: the name of a registered buffer takes tensors alone, and
// what it takes is a buffer from then on. DistributedDataParallel looks its buffers up again for
// every broadcast since 1.10; before, it went on with the tensors that it had found at first.
TensorPointer RegisteredBuffers::take_over(const std::string& name, const Variable& given) {
  const SiteId site = tensors_.site();
  const TensorPointer* tensor = std::get_if<TensorPointer>(&given.content);
  if (tensor == nullptr) {
    throw ProgramException(site, fmt::format("cannot assign a number to `{}`: it is a registered "
                                             "buffer, and takes tensors only",
                                             name));
  }
  const TensorPointer from = *tensor;
  const TensorPointer buffer = buffers_.at(name);
  if (from == buffer || settings_.torch < Version{1, 10, 0}) {
    return from;
  }
  const bool alike = from->shape == buffer->shape && from->slice.dtype == buffer->slice.dtype &&
                     from->device == buffer->device && from->other_gpu == buffer->other_gpu &&
                     from->slice.buffer != no_buffer;
  if (!alike) {
    lack_at(log_, site,
            fmt::format("a tensor of a different shape, type or device for the registered buffer "
                        "`{}` is not modelled",
                        name),
            "give it a tensor like the one that it has");
  }
  std::vector<Ticket> after = streams_.take_waits(compute_stream);
  after.push_back(from->ready);
  buffer->ready = rank_.copy(from->slice, buffer->slice, {compute_stream, After(after), site});
  streams_.submitted(compute_stream, buffer->ready);
  from->uses[compute_stream] = buffer->ready;
  return buffer;
}

}  // namespace lockstep
