#include "model/user_program/locations.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "model/user_program/statement_failure.hpp"

namespace lockstep {

namespace {

constexpr const char* move_it = "move it first: {copy: {tensor: NAME, to: device}}";

// An index selects a single number of it.
bool is_vector(const Variable* variable) {
  const auto* tensor =
      variable == nullptr ? nullptr : std::get_if<TensorPointer>(&variable->content);
  return tensor != nullptr && (*tensor)->shape.size() == 1;
}

// An entry that stands for all of a list; null where they are on several devices, or no tensors.
const Variable* common_place(const Variable::List& items) {
  const Variable* first = nullptr;
  for (const Variable& item : items) {
    const auto* tensor = std::get_if<TensorPointer>(&item.content);
    if (tensor == nullptr) {
      return nullptr;
    }
    const Location here = (*tensor)->location();
    const Location there =
        first == nullptr ? here : std::get<TensorPointer>(first->content)->location();
    if (here.device != there.device || here.other_gpu != there.other_gpu) {
      return nullptr;
    }
    first = first == nullptr ? &item : first;
  }
  return first;
}

}  // namespace

Locations::Locations(const StatementContext& context, ModuleNames& names)
    : rank_(context.rank),
      settings_(context.settings),
      log_(context.log),
      trainer_(context.trainer),
      names_(names) {}

int64_t Locations::own_gpu() const {
  const auto local = static_cast<size_t>(rank_.place().local_rank);
  return local < settings_.gpus.size() ? settings_.gpus[local] : rank_.place().local_rank;
}

bool Locations::is_own(int64_t gpu) const {
  const int32_t devices = rank_.place().devices;
  return devices > 1 ? gpu < devices : gpu == own_gpu();
}

std::string Locations::name_of(const Location& location) const {
  if (location.device == host_device) {
    return "cpu";
  }
  if (rank_.place().devices > 1) {
    return fmt::format("cuda:{}", location.device.value);
  }
  return fmt::format("{}:{}", torch_name_of(settings_.device),
                     location.other_gpu >= 0 ? location.other_gpu : own_gpu());
}

// Any GPU of the node can be written to; that it belongs to another rank goes wrong later.
void Locations::check_target(const CopyTarget& target, SiteId site, const std::string& name) {
  if (target.cpu || target.own || is_own(target.gpu)) {
    return;
  }
  const Place& place = rank_.place();
  const int64_t there = settings_.visible_gpus > 0 ? settings_.visible_gpus
                        : place.devices > 1        ? place.devices
                                                   : place.local_world_size;
  if (target.gpu >= there) {
    throw ProgramException(
        site, fmt::format("{}: invalid device ordinal: gpu {} is not a device of rank {}",
                          settings_.device == DeviceType::cuda
                              ? "CUDA error"
                              : fmt::format("RuntimeError of {}", torch_name_of(settings_.device)),
                          target.gpu, place.rank.value));
  }
  if (settings_.on_gpus) {
    log_.add(
        {"LS310", site,
         fmt::format("`{}` is put on {} {}, which belongs to another rank",
                     name.empty() ? "the tensor" : name, word_for(settings_.device), target.gpu),
         "write `to: device`, the rank's own (`.to(self.device)`, `.type_as(x)`)"});
  }
}

// Every rank says the same of its own GPU, so that one mistake is one finding.
std::string Locations::told(const Location& location) const {
  const bool is_own = location.device != host_device && location.other_gpu < 0;
  return is_own && rank_.place().devices == 1
             ? fmt::format("the rank's {}", word_for(settings_.device))
             : name_of(location);
}

// PyTorch computes on one device; of the others it takes single numbers from the CPU.
void Locations::check_same_device(const Expression& expression, Frame& frame, SiteId site) {
  if (settings_.on_gpus) {
    place_of(expression.root(), frame, site);
  }
}

// `concat` takes all entries, single numbers too, from one device.
void Locations::check_joined(const ExpressionNode& node, Frame& frame, SiteId site) {
  const bool joins = node.kind == ExpressionNode::Kind::call && node.name == "concat";
  const Variable* variable = joins ? names_.find(node.parts.front()->name, frame) : nullptr;
  const auto* items =
      variable == nullptr ? nullptr : std::get_if<Variable::List>(&variable->content);
  if (items == nullptr) {
    return;
  }
  std::optional<Location> first;
  for (size_t i = 0; i < items->size(); ++i) {
    const auto* tensor = std::get_if<TensorPointer>(&(*items)[i].content);
    if (tensor == nullptr) {
      return;
    }
    const Location here = (*tensor)->location();
    first = first.value_or(here);
    if (here.device != first->device || here.other_gpu != first->other_gpu) {
      const std::string& name = node.parts.front()->name;
      fail_device_at(log_, site,
                     fmt::format("Expected all tensors to be on the same device: `{}[0]` is on {}, "
                                 "`{}[{}]` on {}",
                                 name, told(*first), name, i, told(here)),
                     move_it);
    }
  }
}

Locations::PlacedOperand Locations::place_of(const ExpressionNode& node, Frame& frame,
                                             SiteId site) {
  if (node.kind == ExpressionNode::Kind::name) {
    return place_of_name(node.name, frame);
  }
  check_joined(node, frame, site);
  PlacedOperand found;
  for (const ExpressionNodePointer& part : node.parts) {
    const PlacedOperand operand = place_of(*part, frame, site);
    if (found.name != nullptr && operand.name != nullptr &&
        (found.location.device != operand.location.device ||
         found.location.other_gpu != operand.location.other_gpu)) {
      fail_device_at(
          log_, site,
          fmt::format("Expected all tensors to be on the same device: `{}` is on {}, `{}` "
                      "on {}",
                      *found.name, told(found.location), *operand.name, told(operand.location)),
          move_it);
    }
    found = found.name == nullptr ? operand : found;
  }
  const bool is_call = node.kind == ExpressionNode::Kind::call;
  const auto calls = [&](auto... names) { return is_call && ((node.name == names) || ...); };
  const bool is_size = calls("len", "shape", "int", "float");
  const bool is_number = calls("sum", "mean", "min", "max") && node.parts.size() == 1 &&
                         found.location.device == host_device;
  const bool is_entry = node.kind == ExpressionNode::Kind::index &&
                        found.location.device == host_device &&
                        is_vector(names_.find(node.parts.front()->name, frame));
  return is_size || is_number || is_entry ? PlacedOperand{} : found;
}

Locations::PlacedOperand Locations::place_of_name(const std::string& name, Frame& frame) {
  const Variable* variable = names_.find(name, frame);
  if (variable == nullptr && trainer_ != nullptr && trainer_->is_column(name)) {
    return {Location{}, &name};
  }
  if (variable != nullptr) {
    if (const auto* items = std::get_if<Variable::List>(&variable->content)) {
      variable = common_place(*items);
    }
  }
  const auto* tensor =
      variable == nullptr ? nullptr : std::get_if<TensorPointer>(&variable->content);
  const bool counts =
      tensor != nullptr && !((*tensor)->device == host_device && (*tensor)->shape.empty());
  PlacedOperand placed;
  if (counts) {
    placed = {(*tensor)->location(), &name};
  }
  return placed;
}

// XLAStrategy moves what is on the host to its device first.
void Locations::check_call(const DeviceTensor& tensor, SiteId site) const {
  if (settings_.device == DeviceType::tpu) {
    return;
  }
  if (tensor.device == host_device && !settings_.gloo) {
    fail_device_at(
        log_, site,
        "No backend type associated with device type cpu: NCCL moves only tensors on a GPU",
        move_it);
  }
  if (tensor.other_gpu >= 0 && settings_.on_gpus && !settings_.gloo) {
    fail_device_at(log_, site,
                   fmt::format("Tensor found on device {} but backend constructor expects cuda:{}",
                               name_of(tensor.location()), own_gpu()),
                   move_it);
  }
}

// A result is where its operands are; what has none is made on the rank's device.
Location Locations::of_result(const Expression& expression, Frame& frame) {
  if (!settings_.on_gpus) {
    return {};
  }
  for (const std::string& name : expression.names()) {
    const Variable* variable = names_.find(name, frame);
    const auto* items =
        variable == nullptr ? nullptr : std::get_if<Variable::List>(&variable->content);
    if (items != nullptr && !items->empty()) {
      variable = &items->front();
    }
    const auto* tensor =
        variable == nullptr ? nullptr : std::get_if<TensorPointer>(&variable->content);
    if (tensor != nullptr && (*tensor)->device != host_device) {
      return (*tensor)->location();
    }
    if (tensor != nullptr && !(*tensor)->shape.empty()) {
      return {host_device};
    }
  }
  return makes_on_host_ ? Location{host_device} : Location{};
}

}  // namespace lockstep
