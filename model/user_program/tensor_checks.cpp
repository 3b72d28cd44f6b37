#include "model/user_program/tensor_checks.hpp"

#include <fmt/core.h>

namespace lockstep {

void TensorChecks::use(const DeviceTensor& tensor, const std::string& name, SiteId site,
                       bool writes) {
  const std::shared_ptr<PendingWork>& work =
      tensor.being_written() || !writes ? tensor.written_by : tensor.read_by;
  if (work && !work->waited && !work->told) {
    work->told = true;
    log_.add({"LS201", site,
              fmt::format("`{}` is used before the work that was started with async is waited for",
                          name.empty() ? "the data" : name),
              name.empty() ? "add `wait` before this statement"
                           : fmt::format("add `- wait: {}` before this statement", name)});
  }
}

// Gloo reduces in the memory of all ranks: what is not the root's holds sums of some of them.
void TensorChecks::defined(DeviceTensor& tensor, const std::string& name, SiteId site) {
  if (!tensor.left_undefined) {
    return;
  }
  tensor.left_undefined = false;  // one defect, one finding
  log_.add(
      {"LS313", site,
       fmt::format("{} is read on a rank to which `reduce` does not give the result: there Gloo "
                   "leaves sums of some ranks in it",
                   name.empty() ? "the data" : "`" + name + "`"),
       "read the result on its destination only, or use all_reduce"});
}

void TensorChecks::read(DeviceTensor& tensor, const std::string& name, SiteId site) {
  use(tensor, name, site, false);
  defined(tensor, name, site);
}

// PyTorch copies to pinned memory of the host without waiting (Tensor.to, non_blocking).
void TensorChecks::arrival(DeviceTensor& tensor, const std::string& name, SiteId site) {
  const bool early =
      tensor.arrives_unwaited && !tensors_.known_finished(tensor.ready_on, tensor.ready);
  tensor.arrives_unwaited = false;
  if (early) {
    log_.add({"LS201", site,
              fmt::format("`{}` is read on the host before the non_blocking copy that fills it is "
                          "waited for",
                          name),
              "add `- synchronize` before this statement, or leave out non_blocking"});
  }
}

}  // namespace lockstep
