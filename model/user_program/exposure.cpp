// When the memory of a tensor returns.
//
// An allocator of PyTorch gives memory back to the stream that allocated it: what other streams
// still do with it is the user's to order (Tensor.record_stream). Calls of c10d over NCCL have kept
// their tensors themselves in three ways (ProcessGroupNCCL.cpp; pull requests 89880, 111431 and
// 148590 of pytorch, and issue 188655):
//  - by record_stream until the call has finished: always before torch 2.2, async calls before 2.7;
//  - with TORCH_NCCL_AVOID_RECORD_STREAMS=1 (torch 2.0 to 2.6), in the Work of a collective until
//    its wait(), or until nothing holds the Work;
//  - from torch 2.7 on, for async calls alone, until wait(), or until they have finished.
// A call that is not async joins the current stream, so it needs nothing where that one allocated
// the tensor. Gloo's work holds its tensors until it has run.
#include "model/user_program/exposure.hpp"

namespace lockstep {

namespace {

constexpr Version stashes_by_default{2, 7, 0};
constexpr Version records_no_synchronous_call{2, 2, 0};

}  // namespace

bool is_message(const Statement& statement) {
  return statement.kind == StatementKind::send || statement.kind == StatementKind::recv ||
         statement.kind == StatementKind::batch_isend_irecv;
}

void expose(DeviceTensor& tensor, StreamId on) {
  if (tensor.slice.buffer != no_buffer && tensor.device != host_device &&
      on != stream(tensor.home_queue, tensor.device)) {
    tensor.exposed[on] = {};
  }
}

void expose_to_call(const ProgramSettings& settings, const Statement& statement,
                    DeviceTensor& tensor, StreamId on, const std::shared_ptr<PendingWork>& work) {
  tensor.exposed.erase(on);
  const StreamId home = stream(tensor.home_queue, tensor.device);
  if (settings.gloo || tensor.slice.buffer == no_buffer || tensor.device == host_device ||
      on == home) {
    return;
  }
  const StreamId current = on == communication_stream ? compute_stream : on;
  const bool stashes_by_wish = settings.avoids_record_streams &&
                               settings.torch >= Version{2, 0, 0} && !is_message(statement) &&
                               statement.kind != StatementKind::grouped;
  if (settings.torch >= stashes_by_default) {
    if (work) {
      tensor.exposed[on] = {Exposure::Until::waited, work, {}};
    } else if (current != home) {
      tensor.exposed[on] = {};
    }
  } else if (work && stashes_by_wish) {
    tensor.exposed[on] = {Exposure::Until::work_dies, {}, work};
  } else if (!work && current != home &&
             (stashes_by_wish || settings.torch >= records_no_synchronous_call)) {
    tensor.exposed[on] = {};
  }
}

}  // namespace lockstep
