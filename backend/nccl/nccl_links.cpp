#include "backend/nccl/nccl_links.hpp"

#include <c10/cuda/CUDAGuard.h>

#include <cstring>
#include <utility>

namespace lockstep::backend {

namespace {

// A look at the board is a message to its server.
constexpr std::chrono::milliseconds look_every{1};

std::string text_of(ncclResult_t result) {
  return std::string(ncclGetErrorString(result)) + "; " + ncclGetLastError(nullptr);
}

}  // namespace

void check_nccl(ncclResult_t result, const char* call) {
  if (result == ncclSuccess || result == ncclInProgress) {
    return;
  }
  const std::string text = std::string(call) + ": " + text_of(result);
  if (result == ncclRemoteError) {
    throw LinkBroken(text);
  }
  throw DeviceError(text);
}

NcclLinks::~NcclLinks() { abort_all(); }

LinkId NcclLinks::open(const std::string& name, int32_t self, int32_t size) {
  std::unique_lock lock(mutex_);
  Link& link = links_.emplace_back();
  link.key = "nccl/" + name;
  link.self = self;
  link.size = size;
  const auto number = static_cast<LinkId>(links_.size() - 1);
  lock.unlock();
  if (self == 0) {
    ncclUniqueId id;
    check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    std::vector<uint8_t> word(sizeof id);
    std::memcpy(word.data(), &id, sizeof id);
    if (size > 1) {
      board_.post(link.key, word);
    }
    connect(link, id);
  }
  return number;
}

// The call allocates on the GPU and may stand behind what runs there, so abort_all of another
// thread must get its lock meanwhile.
void NcclLinks::connect(Link& link, const ncclUniqueId& id) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(gpu_));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t made = nullptr;
  check_nccl(ncclCommInitRankConfig(&made, link.size, id, link.self, &config),
             "ncclCommInitRankConfig");
  const std::lock_guard lock(mutex_);
  link.communicator = made;
  if (aborted_) {
    abort_together();
  }
}

void NcclLinks::look_for_id(Link& link) {
  const auto now = std::chrono::steady_clock::now();
  if (now - link.looked < look_every) {
    return;
  }
  link.looked = now;
  ncclUniqueId id;
  const auto word = board_.look(link.key);
  if (word && word->size() == sizeof id) {
    std::memcpy(&id, word->data(), sizeof id);
    connect(link, id);
  }
}

LinkState NcclLinks::state_of(LinkId number) {
  std::unique_lock lock(mutex_);
  Link& link = links_.at(number);
  if (link.broken || aborted_) {
    return LinkState::broken;
  }
  if (link.communicator == nullptr) {
    lock.unlock();
    look_for_id(link);
    return LinkState::busy;
  }
  ncclResult_t error = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(link.communicator, &error);
  if (asked != ncclSuccess || (error != ncclSuccess && error != ncclInProgress)) {
    // Its memory is given back with that of the others: freeing waits for the GPU, where a kernel
    // of another link may wait forever.
    link.broken = true;
    link.trouble = text_of(asked != ncclSuccess ? asked : error);
    return LinkState::broken;
  }
  return error == ncclInProgress ? LinkState::busy : LinkState::ready;
}

std::string NcclLinks::trouble_of(LinkId link) {
  const std::lock_guard lock(mutex_);
  return links_.at(link).trouble;
}

ncclComm_t NcclLinks::communicator(LinkId link) {
  const std::lock_guard lock(mutex_);
  const Link& of = links_.at(link);
  return of.broken || aborted_ ? nullptr : of.communicator;
}

void NcclLinks::abort_all() noexcept {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  abort_together();
}

// As one group: each alone would free its memory, and wait for the GPU, while the kernels of the
// others still run there.
void NcclLinks::abort_together() noexcept {
  ncclGroupStart();
  for (Link& link : links_) {
    if (link.communicator != nullptr) {
      ncclCommAbort(std::exchange(link.communicator, nullptr));
    }
    link.broken = true;
  }
  ncclGroupEnd();
}

}  // namespace lockstep::backend
