// When the memory of a tensor returns, and which work nobody waits for.
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
#include <fmt/core.h>

#include <algorithm>

#include "model/user_program/interpreter.hpp"
#include "model/user_program/sites.hpp"

namespace lockstep {

namespace {

constexpr Version stashes_by_default{2, 7, 0};
constexpr Version records_no_synchronous_call{2, 2, 0};

bool is_message(const Statement& statement) {
  return statement.kind == StatementKind::send || statement.kind == StatementKind::recv ||
         statement.kind == StatementKind::batch_isend_irecv;
}

}  // namespace

void Interpreter::expose(DeviceTensor& tensor, StreamId on) {
  if (tensor.slice.buffer != no_buffer && tensor.device != host_device &&
      on != stream(tensor.home_queue, tensor.device)) {
    tensor.exposed[on] = {};
  }
}

void Interpreter::expose_to_call(const Statement& statement, DeviceTensor& tensor, StreamId on,
                                 const std::shared_ptr<PendingWork>& work) const {
  tensor.exposed.erase(on);
  const StreamId home = stream(tensor.home_queue, tensor.device);
  if (settings_.gloo || tensor.slice.buffer == no_buffer || tensor.device == host_device ||
      on == home) {
    return;
  }
  const StreamId current = on == communication_stream ? compute_stream : on;
  const bool stashes_by_wish = settings_.avoids_record_streams &&
                               settings_.torch >= Version{2, 0, 0} && !is_message(statement) &&
                               statement.kind != StatementKind::grouped;
  if (settings_.torch >= stashes_by_default) {
    if (work) {
      tensor.exposed[on] = {Exposure::Until::waited, work, {}};
    } else if (current != home) {
      tensor.exposed[on] = {};
    }
  } else if (work && stashes_by_wish) {
    tensor.exposed[on] = {Exposure::Until::work_dies, {}, work};
  } else if (!work && current != home &&
             (stashes_by_wish || settings_.torch >= records_no_synchronous_call)) {
    tensor.exposed[on] = {};
  }
}

void Interpreter::leave(Frame& frame, SiteId hook) {
  tensors_.begins(hook);
  frame.clear();
  streams_.release_exposed();
}

std::shared_ptr<PendingWork> Interpreter::start_work(const Statement& statement, Ticket ticket,
                                                     StreamId on) {
  auto work = std::make_shared<PendingWork>(PendingWork{ticket, on});
  work->site = site_of(statement);
  work->call = name_of(statement.kind);
  work->is_message = is_message(statement);
  if (works_.size() >= works_to_sort_) {
    std::erase_if(works_, [](const auto& known) { return known->waited || known->told; });
    works_to_sort_ = 1024 + 2 * works_.size();
  }
  works_.push_back(work);
  return work;
}

// With NCCL a host that has waited for the device has waited for the work too. Seen with
// torch 2.11: a message of Gloo whose handle goes before it was sent never comes.
void Interpreter::tell_unwaited() {
  for (const std::shared_ptr<PendingWork>& work : works_) {
    const bool synchronised =
        !settings_.gloo && tensors_.known_finished(work->stream, work->ticket);
    if (!work->waited && !work->told && !synchronised) {
      const bool may_be_lost = settings_.gloo && work->is_message;
      log_.add({"LS403", work->site,
                fmt::format("{} is started with async and never waited for{}", work->call,
                            may_be_lost ? "; Gloo loses the message if its handle goes first" : ""),
                "give it a name with `as`, and `wait` for that before its data is used or changed, "
                "and before the program ends"});
    }
  }
  works_.clear();
}

}  // namespace lockstep
