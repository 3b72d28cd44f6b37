#include "backend/nccl/nccl_links.hpp"

#include <c10/cuda/CUDAGuard.h>

#include <cstring>

namespace lockstep::backend {

namespace {

// A look at the board is a message to its server.
constexpr std::chrono::milliseconds look_every{1};

}  // namespace

void check_nccl(ncclResult_t result, const char* call) {
  if (result != ncclSuccess && result != ncclInProgress) {
    throw DeviceError(std::string(call) + ": " + ncclGetErrorString(result) + "; " +
                      ncclGetLastError(nullptr));
  }
}

NcclLinks::~NcclLinks() { abort_all(); }

LinkId NcclLinks::open(const std::string& name, int32_t self, int32_t size) {
  const std::lock_guard lock(mutex_);
  links_.push_back({"nccl/" + name, self, size, nullptr, false, {}});
  Link& link = links_.back();
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
  return static_cast<LinkId>(links_.size() - 1);
}

void NcclLinks::connect(Link& link, const ncclUniqueId& id) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(gpu_));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  check_nccl(ncclCommInitRankConfig(&link.communicator, link.size, id, link.self, &config),
             "ncclCommInitRankConfig");
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
  const std::lock_guard lock(mutex_);
  Link& link = links_.at(number);
  if (link.broken) {
    return LinkState::broken;
  }
  if (link.communicator == nullptr) {
    look_for_id(link);
    return LinkState::busy;
  }
  ncclResult_t error = ncclSuccess;
  if (ncclCommGetAsyncError(link.communicator, &error) != ncclSuccess ||
      (error != ncclSuccess && error != ncclInProgress)) {
    abort(link);
    return LinkState::broken;
  }
  return error == ncclInProgress ? LinkState::busy : LinkState::ready;
}

ncclComm_t NcclLinks::communicator(LinkId link) {
  const std::lock_guard lock(mutex_);
  return links_.at(link).communicator;
}

void NcclLinks::abort(Link& link) noexcept {
  if (link.communicator != nullptr) {
    ncclCommAbort(link.communicator);
    link.communicator = nullptr;
  }
  link.broken = true;
}

void NcclLinks::abort_all() noexcept {
  const std::lock_guard lock(mutex_);
  for (Link& link : links_) {
    abort(link);
  }
}

}  // namespace lockstep::backend
