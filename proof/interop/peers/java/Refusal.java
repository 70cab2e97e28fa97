/** An error that the driver returns, of the kind held, lost, unsupported or failed. */
final class Refusal extends RuntimeException {
    private static final long serialVersionUID = 1L;

    final String kind;

    Refusal(final String kind, final String message) {
        super(message);
        this.kind = kind;
    }
}
