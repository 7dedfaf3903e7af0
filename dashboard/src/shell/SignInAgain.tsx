import { session } from "../api/session";
import { Button, Dialog } from "../components";
import { SignInForm } from "./SignIn";

/** Asks for a new sign-in over the page that was open; a sign-in in another tab counts too. */
export function SignInAgain() {
  return (
    <Dialog
      title="Sign in again"
      isOpen
      footer={
        <Button variant="quiet" onPress={() => session.signedOut()}>
          Sign out and lose what you typed
        </Button>
      }
    >
      <p>Your session has ended. Nothing you typed is lost: sign in, and the page continues.</p>
      <SignInForm />
    </Dialog>
  );
}
