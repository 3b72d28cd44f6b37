// Aside: a tensor that is made first, and that layers behind it read beside their input.
#include <fmt/format.h>

#include "model/network/network_builder.hpp"

namespace lockstep {

/// `shortcut` makes the tensor, from the input; `layers` then begin with that input again.
bool NetworkBuilder::add_aside(const LayerDescription& description, LayerLevel& level,
                               const std::string& path) {
  ArgumentReader arguments(description, {});
  const std::string name = arguments.text("as", "");
  LayerLevel inside = inner_level(name_for(arguments, level), path, level);
  const auto recomputation = read_checkpoint(arguments);
  if (!finish(arguments, path)) {
    return false;
  }
  if (description.shortcut.empty()) {
    complain(path, description.source, "an Aside without `of`",
             "give `of` the layers that make the tensor which `layers` read");
    return false;
  }
  const size_t first = begin_segment(recomputation);
  const size_t block = begin_block(description.kind, false);
  const Shape remembered = shape_;
  const size_t begin = result_.network.layers.size();
  add_marker(LayerKind::residual_begin, inside, remembered);
  inside.path = path + ".of";
  if (!add_all(description.shortcut, inside)) {
    return false;
  }
  asides_.push_back({name, {begin, shape_}});
  add_marker(LayerKind::residual_shortcut, inside, remembered);
  inside.path = path + ".layers";
  if (!add_all(description.layers, inside)) {
    return false;
  }
  if (!asides_.back().is_read) {
    complain(path, description.source, "no layer reads what this Aside makes",
             "remove it, or name it in `aside` of the layer that is to read it");
    return false;
  }
  asides_.pop_back();
  add_marker(LayerKind::aside_end, inside, shape_);
  end_block(block);
  end_segment(first, recomputation);
  return true;
}

/// The one that `aside` names, or the innermost. Complains where there is none.
OpenAside* NetworkBuilder::find_aside(ArgumentReader& arguments, std::string_view kind) {
  const std::string name = arguments.text("aside", "");
  for (auto open = asides_.rbegin(); open != asides_.rend(); ++open) {
    if (name.empty() || open->name == name) {
      open->is_read = true;
      return &*open;
    }
  }
  arguments.complain(name.empty() ? fmt::format("{} stands in no Aside", kind)
                                  : fmt::format("no Aside around {} is called `{}`", kind, name),
                     "write {Aside: {as: memory, of: [..], layers: [..]}} around it");
  return nullptr;
}

}  // namespace lockstep
