#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// What users of the frameworks write, and what a scenario calls it.

/// The legal word for one of another vocabulary: `on_val_epoch_end` is `on_validation_epoch_end`,
/// `mean` is `avg`. Empty where there is none among `legal`.
std::string familiar_word(std::string_view word, const std::vector<std::string_view>& legal);

/// The section that has the key of `section` that is not there: "batch_size" of "trainer" is one of
/// "data.train". Empty where it is nobody's.
std::string_view section_of_key(std::string_view section, std::string_view key);

/// What to write for a method that sets up processes, which `section` has no key for: the keys that
/// stand for what an override of `configure_ddp` passes. Empty for other keys.
std::string_view keys_for_override(std::string_view section, std::string_view key);

/// What to write for a statement of Python, such as `self.log("x", loss)`; empty for other texts.
std::string statement_for_python(std::string_view text);

/// The name in expressions of an attribute: `self.trainer.is_global_zero` is `is_global_zero`.
/// Empty where it is none of `names`.
std::string name_for_attribute(std::string_view attribute,
                               const std::vector<std::string_view>& names);

}  // namespace lockstep
