#include "gpu/nvrtc.h"

#include <nvrtc.h>

#include <chrono>

#include "gpu/cubin.h"
#include "gpu/library.h"

namespace tunerd::gpu {

struct Compiler::Impl {
  Library library;
  std::string version;
  decltype(&::nvrtcCreateProgram) create = nullptr;
  decltype(&::nvrtcDestroyProgram) destroy = nullptr;
  decltype(&::nvrtcCompileProgram) compile = nullptr;
  decltype(&::nvrtcGetProgramLogSize) log_size = nullptr;
  decltype(&::nvrtcGetProgramLog) log = nullptr;
  decltype(&::nvrtcGetCUBINSize) cubin_size = nullptr;
  decltype(&::nvrtcGetCUBIN) cubin = nullptr;
  decltype(&::nvrtcGetErrorString) error_string = nullptr;
};

namespace {

struct Program {
  nvrtcProgram handle = nullptr;
  decltype(&::nvrtcDestroyProgram) destroy;
  explicit Program(decltype(&::nvrtcDestroyProgram) function) : destroy(function) {}
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (handle != nullptr) destroy(&handle);
  }
};

std::string first_error(const std::string& log) {
  std::string_view rest = log;
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    const auto line = rest.substr(0, end);
    if (line.find("error") != std::string_view::npos) return std::string(line.substr(0, 400));
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  }
  return log.substr(0, 400);
}

}  // namespace

Compiler::Compiler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Compiler::Compiler(Compiler&&) noexcept = default;
Compiler& Compiler::operator=(Compiler&&) noexcept = default;
Compiler::~Compiler() = default;

const std::string& Compiler::version() const { return impl_->version; }

Result<Compiler> Compiler::load() {
  auto impl = std::make_unique<Impl>();
  TRY_ASSIGN(impl->library, Library::open("NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}));
  decltype(&::nvrtcVersion) version = nullptr;
  TRY(impl->library.bind(version, "nvrtcVersion"));
  TRY(impl->library.bind(impl->create, "nvrtcCreateProgram"));
  TRY(impl->library.bind(impl->destroy, "nvrtcDestroyProgram"));
  TRY(impl->library.bind(impl->compile, "nvrtcCompileProgram"));
  TRY(impl->library.bind(impl->log_size, "nvrtcGetProgramLogSize"));
  TRY(impl->library.bind(impl->log, "nvrtcGetProgramLog"));
  TRY(impl->library.bind(impl->cubin_size, "nvrtcGetCUBINSize"));
  TRY(impl->library.bind(impl->cubin, "nvrtcGetCUBIN"));
  TRY(impl->library.bind(impl->error_string, "nvrtcGetErrorString"));
  int major = 0, minor = 0;
  if (version(&major, &minor) != NVRTC_SUCCESS)
    return fail(Code::missing, impl->library.path() + " does not tell its version");
  impl->version = std::to_string(major) + "." + std::to_string(minor);
  return Compiler(std::move(impl));
}

wire::CompileResult Compiler::compile(const wire::CompileJob& job) const {
  wire::CompileResult result;
  result.id = job.id;
  const auto started = std::chrono::steady_clock::now();
  std::vector<const char*> names, texts, options;
  for (const auto& [name, text] : job.headers) {
    names.push_back(name.c_str());
    texts.push_back(text.c_str());
  }
  const std::string arch = "--gpu-architecture=" + job.arch;
  for (const auto& option : job.options) options.push_back(option.c_str());
  options.push_back(arch.c_str());

  Program program(impl_->destroy);
  auto status = impl_->create(&program.handle, job.source.c_str(), job.source_name.c_str(),
                              static_cast<int>(names.size()), texts.data(), names.data());
  if (status == NVRTC_SUCCESS)
    status = impl_->compile(program.handle, static_cast<int>(options.size()), options.data());
  std::size_t size = 0;
  if (program.handle != nullptr && impl_->log_size(program.handle, &size) == NVRTC_SUCCESS && size > 1) {
    result.log.resize(size);
    if (impl_->log(program.handle, result.log.data()) != NVRTC_SUCCESS) result.log.clear();
    while (!result.log.empty() && result.log.back() == '\0') result.log.pop_back();
  }
  if (status == NVRTC_SUCCESS) status = impl_->cubin_size(program.handle, &size);
  if (status == NVRTC_SUCCESS && size > 0) {
    result.cubin.resize(size);
    status = impl_->cubin(program.handle, result.cubin.data());
  }
  result.compile_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started).count();
  if (status != NVRTC_SUCCESS || result.cubin.empty()) {
    result.cubin.clear();
    result.error = result.log.empty() ? impl_->error_string(status) : first_error(result.log);
    return result;
  }
  const auto kernel = find_kernel(result.cubin, job.entry);
  const Status usable = kernel ? check_arch(*kernel, job.arch) : Status(Unexpected(kernel.error()));
  if (!usable) {
    result.cubin.clear();
    result.error = usable.error().text();
    return result;
  }
  result.ok = true;
  const Resources resources = read_log(result.log, job.entry);
  result.registers = resources.registers;
  result.spill_bytes = resources.spill_bytes;
  result.stack_bytes = resources.stack_bytes;
  result.static_smem_bytes = resources.static_smem_bytes;
  result.rejected = resources.rejected;
  return result;
}

}  // namespace tunerd::gpu
